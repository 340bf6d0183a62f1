import { writeSync } from 'node:fs'
import { Socket } from 'node:net'
import type { Output } from '../command.ts'

/**
 * The output of `process.stdout`. If that is a file, Node's stream writes once, and drops without an error what a full disk did not
 * take, so the file is written here. `lost` receives the error.
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
