import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { CommandError } from './command.ts'

/** A file that a command writes, and writes again. */
export interface OwnFile {
  readonly name: string
  readonly text: string
  /** How every text begins that the command gives such a file: one that is there and does not is somebody else's. */
  readonly begins: string
}

/**
 * Writes files in a folder, which is made, and resolves with their paths below `folder`. What was written so before is
 * overwritten. Throws CommandError, and writes nothing, if one of the files that are there is somebody else's.
 */
export async function writeOwn(files: readonly OwnFile[], folder: string, cwd: string): Promise<string[]> {
  const paths = files.map(({ name }) => join(folder, name))
  for (const [i, { begins }] of files.entries()) {
    const path = String(paths[i])
    const there = await readFile(resolve(cwd, path), 'utf8').catch(absent(path))
    if (there !== undefined && !there.startsWith(begins)) {
      throw new CommandError(`${path} was not written by this command, so that it is left alone. Move it away, or give another folder with --out.`)
    }
  }
  try {
    await mkdir(resolve(cwd, folder), { recursive: true })
    for (const [i, { text }] of files.entries()) await writeFile(resolve(cwd, String(paths[i])), text)
    return paths
  } catch (cause) {
    throw notWritten(folder, cause)
  }
}

function absent(path: string): (cause: NodeJS.ErrnoException) => undefined {
  return cause => {
    if (cause.code !== 'ENOENT' && cause.code !== 'ENOTDIR') throw notWritten(path, cause)
  }
}

function notWritten(path: string, cause: unknown): CommandError {
  return new CommandError(`${path} could not be written: ${(cause as Error).message}. Give another folder with --out.`, { cause })
}
