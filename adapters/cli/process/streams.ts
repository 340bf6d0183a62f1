import { writeSync } from 'node:fs'
import { Socket } from 'node:net'
import { createInterface, type Key } from 'node:readline'
import { StringDecoder } from 'node:string_decoder'
import { onAbort } from '../../../runtime/primitives/event-loop.ts'
import type { LineInput, Output } from '../command.ts'

/** A stream of input that may be a terminal: `process.stdin`. */
type Input = NodeJS.ReadableStream & { readonly isTTY?: boolean }

/** The lines of a stream. On a terminal they can be edited, with a history, and Ctrl-C calls `interrupt`. */
export function lineInput(input: Input, output: NodeJS.WritableStream, interrupt: () => void): LineInput {
  return input.isTTY ? terminalInput(input, output, interrupt) : pipedInput(input)
}

/**
 * Characters of a line of a pipe that are kept. A longer line has more bytes than a message may have, and is refused by
 * its beginning.
 */
const LONGEST_LINE = 8 * 1024 * 1024

/** The lines of a pipe. They end with LF, alone or behind CR: JSON may have every other line separator in a text. */
async function* linesOf(input: Input): AsyncGenerator<string, void, undefined> {
  const decoder = new StringDecoder()
  let begun = ''
  for await (const chunk of input) {
    const [first = '', ...others] = decoder.write(chunk).split('\n')
    const lines = [begun + first.slice(0, LONGEST_LINE - begun.length), ...others]
    begun = lines.pop() as string
    for (const line of lines) yield line.replace(/\r$/, '')
  }
  begun += decoder.end()
  if (begun !== '') yield begun
}

/** One reader for all lines: it may read further than the line that it gives. */
function pipedInput(input: Input): LineInput {
  let lines: AsyncIterator<string> | undefined
  return {
    isTerminal: false,
    ask: async (_, signal) => {
      lines ??= linesOf(input)
      if (signal.aborted) return undefined
      const waiters: (() => void)[] = []
      const stopped = new Promise<undefined>(resolve => waiters.push(onAbort(signal, () => resolve(undefined))))
      const next = await Promise.race([lines.next(), stopped]).finally(() => waiters.forEach(remove => remove()))
      return next?.done === false ? next.value : undefined
    }
  }
}

/** One key that was typed: its text and readline's description of it. */
type TypedKey = readonly [text: string | undefined, key: Key]

/**
 * One reader for each line: between lines the terminal is as usual, so that Ctrl-C is a signal. The keys behind a line
 * that came with it, as in a pasted text, belong to the next ones.
 */
function terminalInput(input: Input, output: NodeJS.WritableStream, interrupt: () => void): LineInput {
  let history: string[] = []
  const typed: TypedKey[] = []
  const ask = (prompt: string, signal: AbortSignal) =>
    new Promise<string | undefined>(resolve => {
      if (signal.aborted) return resolve(undefined)
      let line: string | undefined
      let isOpen = true
      /** The newest key: LF after CR is a half of it. */
      let newest: Key | undefined
      const note = (text: string | undefined, key: Key) => {
        const isHalf = newest?.name === 'return' && key.name === 'enter'
        newest = key
        if (!isOpen && !isHalf) typed.push([text, key])
      }
      input.on('keypress', note)
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
        isOpen = false
        signal.removeEventListener('abort', stop)
        // The cursor is still behind the prompt.
        if (line === undefined) output.write('\n')
        // All keys of a text arrive before the next microtask.
        queueMicrotask(() => {
          input.off('keypress', note)
          resolve(line)
        })
      })
      reader.prompt()
      for (const [text, key] of typed.splice(0)) {
        if (isOpen) reader.write(text ?? '', key)
        else typed.push([text, key])
      }
    })
  return { isTerminal: true, ask }
}

/**
 * The output of `process.stdout`. If that is a file, Node's stream writes once, and drops without an error what a full
 * disk did not take, so the file is written here. `lost` receives the error.
 */
export function wholeOutput(
  stream: NodeJS.WritableStream & { readonly fd: number },
  lost: (error: NodeJS.ErrnoException) => void
): Output {
  if (stream instanceof Socket) return stream
  return {
    write: (text, written) => {
      try {
        for (let rest = Buffer.from(text); rest.length > 0;) rest = rest.subarray(writeSync(stream.fd, rest))
      } catch (error) {
        return lost(error as NodeJS.ErrnoException)
      }
      written?.()
    }
  }
}

/** Lets a stream write to another one, apart from what is written by the result, which is written to its `output`. */
export function divertOutput(
  stream: NodeJS.WritableStream,
  other: NodeJS.WritableStream,
  output: Output
): { readonly write: (text: string, written?: () => void) => void; readonly undo: () => void } {
  const own = output === stream ? stream.write.bind(stream) : output.write.bind(output)
  stream.write = other.write.bind(other)
  return {
    write: (text, written) => {
      own(text, written)
    },
    undo: () => {
      Reflect.deleteProperty(stream, 'write')
    }
  }
}
