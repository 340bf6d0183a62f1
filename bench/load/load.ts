/** Clients of one server, as raw as they get: requests and answers are JSON-RPC text. A JSON-RPC error rejects. */
export interface Load {
  /** The text of the answer. */
  call(method: string, params: unknown): Promise<string>
  /**
   * Hands over the text of each event of a stream; resolves at its end. `parameters` are service parameters, which only
   * WebSockets send.
   */
  stream(
    method: string,
    params: unknown,
    see: (event: string) => void,
    parameters?: Readonly<Record<string, string>>
  ): Promise<void>
  close(): Promise<void>
}

/** Does something so often, so many at a time, each as soon as one before it is over. */
export async function repeat(times: number, inFlight: number, once: (index: number) => Promise<void>): Promise<void> {
  let begun = 0
  const worker = async () => {
    while (begun < times) await once(begun++)
  }
  await Promise.all(Array.from({ length: inFlight }, worker))
}
