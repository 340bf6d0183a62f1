/** Emits messages or chunks of data: a socket, stream or process of Node. */
interface Emitter {
  on(event: string, listener: (...given: never[]) => void): unknown
  /** Ends a WebSocket of `ws`. */
  terminate?(): void
  /** Ends a stream or a socket. */
  destroy?(error: Error): void
}

/** A thread of Node, or its parent. */
interface Port {
  on(event: 'message', listener: (value: unknown) => void): unknown
}

/** A WebSocket of the web platform. */
interface Target {
  addEventListener(event: 'message', listener: (event: { readonly data: unknown }) => void): unknown
}

/**
 * Calls `take` with everything that a socket, stream, thread or process of Node sends, and `fail` with what `take`
 * throws. Such listeners are attached nowhere else, because an error that leaves one ends the process. `fail` does not
 * throw; by default it ends the socket or stream. `members` are added to the listener.
 */
export function onReceived(
  source: Emitter | Port,
  event: 'message' | 'data',
  take: (...given: never[]) => void,
  fail = (error: unknown) => endSource(source as Emitter, error),
  members: object = {}
): void {
  const listener = Object.assign(catchErrors(take, fail), members)
  ;(source as Emitter).on(event, listener)
}

function endSource(source: Emitter, error: unknown): void {
  if (source.terminate) source.terminate()
  else source.destroy?.(error as Error)
}

/** Does the same with the messages of a WebSocket of the web platform, or of `ws`. */
export function onMessageEvent(
  source: Target,
  take: (event: { readonly data: unknown }) => void,
  fail: (error: unknown) => void
): void {
  source.addEventListener('message', catchErrors(take, fail))
}

/** A function that passes what `take` throws to `fail`. */
export function catchErrors<Given extends readonly unknown[]>(
  take: (...given: Given) => void,
  fail: (error: unknown) => void
): (...given: Given) => void {
  return (...given) => {
    try {
      take(...given)
    } catch (error) {
      fail(error)
    }
  }
}
