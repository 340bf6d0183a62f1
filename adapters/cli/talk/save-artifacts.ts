import { join, resolve } from 'node:path'
import { CommandError } from '../command.ts'
import { makeFolder } from '../make-folder.ts'
import { writeNew } from '../write-own.ts'
import type { Given } from './artifact-parts.ts'
import { numbered, safeFileName } from './file-name.ts'

/**
 * Saves a result in a folder, which it creates, and resolves with the path relative to `folder`'s parent. Names are made safe. Existing
 * files are never overwritten: the new one gets a number.
 */
export async function saveGiven(given: Exclude<Given, { url: string }>, folder: string, cwd: string): Promise<string> {
  const name = nameOf(given)
  try {
    await makeFolder(resolve(cwd, folder))
    return await writeFree(
      n => join(folder, numbered(name, n)),
      path => isWritten(resolve(cwd, path), contentOf(given))
    )
  } catch (cause) {
    throw new CommandError(
      `${join(folder, name)} could not be saved: ${(cause as Error).message}. Give another folder with --out.`,
      { cause }
    )
  }
}

/** Writes to the first free path, by number from 1. */
async function writeFree(
  pathOf: (n: number) => string,
  isWritten: (path: string) => Promise<boolean>,
  n = 1
): Promise<string> {
  const path = pathOf(n)
  return (await isWritten(path)) ? path : writeFree(pathOf, isWritten, n + 1)
}

function nameOf(given: Exclude<Given, { url: string }>): string {
  if ('bytes' in given) return safeFileName(given.name, given.mediaType)
  if ('text' in given) return safeFileName(given.name, given.mediaType ?? 'text/plain')
  const name = safeFileName(given.name, 'application/json')
  return name.endsWith('.json') ? name : `${name}.json`
}

function contentOf(given: Exclude<Given, { url: string }>): string | Uint8Array {
  if ('bytes' in given) return given.bytes
  return 'text' in given ? given.text : `${JSON.stringify(given.data, null, 2)}\n`
}

/** Writes a new file. Resolves with false if a file or a link has that path. */
async function isWritten(path: string, content: string | Uint8Array): Promise<boolean> {
  try {
    await writeNew(path, content)
    return true
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') return false
    throw error
  }
}
