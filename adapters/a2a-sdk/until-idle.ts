import type { Clock } from '../../runtime/ports/clock.ts'

/**
 * A stream that ends by itself when nothing has happened for `idleMs`: for readers that never say that they are gone. What
 * is opened ends when its signal aborts.
 */
export async function* untilIdle<T>(open: (signal: AbortSignal) => AsyncIterable<T>, clock: Clock, idleMs: number): AsyncGenerator<T, void, undefined> {
  const idle = new AbortController()
  const startTimer = () => clock.setTimeout(() => idle.abort(), idleMs)
  let timer = startTimer()
  try {
    for await (const event of open(idle.signal)) {
      clock.clearTimeout(timer)
      yield event
      timer = startTimer()
    }
  } finally {
    clock.clearTimeout(timer)
  }
}
