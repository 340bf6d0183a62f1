import { open, unlink } from 'node:fs/promises'
import { CommandError, type Output } from '../command.ts'

/** Where lines go, each after the one before is out, so that memory does not fill when the reader is slow. */
export interface LineSink {
  write(line: string): Promise<void>
  /** Called once, when all lines were written, or when no more will come though some are missing. */
  end(isWhole: boolean): Promise<void>
}

/** Lines go to an output of the process. */
export function outputSink(output: Output): LineSink {
  return { write: line => new Promise(resolve => output.write(line, resolve)), end: async () => {} }
}

/** Lines go to a new file, which is removed again if it does not become whole. Throws if there is a file of that name. */
export async function fileSink(path: string): Promise<LineSink> {
  const file = await open(path, 'wx').catch((cause: NodeJS.ErrnoException) => {
    if (cause.code === 'EEXIST') throw new CommandError(`${path} is there already, and files are never overwritten. Give another name with --out.`, { cause })
    throw new CommandError(`${path} cannot be written: ${cause.message}. Give another name with --out.`, { cause })
  })
  return {
    write: line => file.appendFile(line),
    end: async isWhole => {
      await file.close()
      if (!isWhole) await unlink(path)
    }
  }
}
