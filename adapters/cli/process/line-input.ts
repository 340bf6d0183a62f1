import { createInterface } from 'node:readline'
import { onAbort } from '../../../runtime/primitives/promises.ts'
import type { LineInput } from '../command.ts'

/** A stream of input that may be a terminal: `process.stdin`. */
type Input = NodeJS.ReadableStream & { readonly isTTY?: boolean }

/** The lines of a stream. On a terminal they can be edited, with a history, and Ctrl-C calls `interrupt`. */
export function lineInput(input: Input, output: NodeJS.WritableStream, interrupt: () => void): LineInput {
  return input.isTTY ? terminalInput(input, output, interrupt) : pipedInput(input)
}

/** One reader for all lines: it may read further than the line that it gives. */
function pipedInput(input: Input): LineInput {
  let lines: AsyncIterator<string> | undefined
  return {
    isTerminal: false,
    ask: async (_, signal) => {
      lines ??= createInterface({ input, crlfDelay: Infinity })[Symbol.asyncIterator]()
      if (signal.aborted) return undefined
      const waiters: (() => void)[] = []
      const stopped = new Promise<undefined>(resolve => waiters.push(onAbort(signal, () => resolve(undefined))))
      const next = await Promise.race([lines.next(), stopped]).finally(() => waiters.forEach(remove => remove()))
      return next?.done === false ? next.value : undefined
    }
  }
}

/** One reader for each line: between lines the terminal is as usual, so that Ctrl-C is a signal. */
function terminalInput(input: Input, output: NodeJS.WritableStream, interrupt: () => void): LineInput {
  let history: string[] = []
  const ask = (prompt: string, signal: AbortSignal) => new Promise<string | undefined>(resolve => {
    if (signal.aborted) return resolve(undefined)
    let line: string | undefined
    const reader = createInterface({ input, output, prompt, terminal: true, history, removeHistoryDuplicates: true })
    const stop = () => reader.close()
    signal.addEventListener('abort', stop, { once: true })
    reader.on('history', (newest: string[]) => (history = newest))
    reader.on('SIGINT', interrupt)
    reader.once('line', given => {
      line = given
      reader.close()
    })
    reader.once('close', () => {
      signal.removeEventListener('abort', stop)
      // The cursor is still behind the prompt.
      if (line === undefined) output.write('\n')
      resolve(line)
    })
    reader.prompt()
  })
  return { isTerminal: true, ask }
}
