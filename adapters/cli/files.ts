import { unwatchFile, watchFile } from 'node:fs'
import { mkdir, readFile, stat, unlink, writeFile } from 'node:fs/promises'
import { basename, dirname, join, parse, relative, resolve, sep } from 'node:path'
import { isObject } from '../../machines/protocol/codec/json.ts'
import type { Logger } from '../../runtime/ports/logger.ts'
import type { RecordedExample } from '../inspector/feed.ts'
import { readExample } from '../inspector/story/story.ts'
import type { ChartCoverage } from '../inspector/test-result.ts'
import { CommandError } from './command.ts'

/**
 * Creates a folder and its parents, with this mode. `path` is absolute. Rejects with Node's error if that is
 * impossible. Node's own `recursive` never returns for a new folder in /proc.
 */
export async function makeFolder(path: string, mode = 0o777): Promise<void> {
  let folder = parse(path).root
  for (const name of relative(folder, path).split(sep)) {
    folder = join(folder, name)
    await mkdir(folder, mode).catch(async error => {
      if (!(await isFolder(folder))) throw error
    })
  }
}

async function isFolder(path: string): Promise<boolean> {
  return stat(path).then(
    found => found.isDirectory(),
    () => false
  )
}

/** A file that a command writes, and may overwrite. */
export interface OwnFile {
  readonly name: string
  readonly text: string
  /** How the command's own files begin. An existing file that begins differently belongs to the user. */
  readonly begins: string
}

/**
 * Writes files into a folder, which it creates, and resolves with their paths. The command's own files are overwritten.
 * Throws CommandError, and writes nothing, if one of the existing files belongs to the user. It advises another
 * `place`.
 */
export async function writeOwn(
  files: readonly OwnFile[],
  folder: string,
  cwd: string,
  place = 'folder with --out'
): Promise<string[]> {
  const paths = files.map(({ name }) => join(folder, name))
  for (const [i, { begins }] of files.entries()) {
    const path = String(paths[i])
    const there = await readFile(resolve(cwd, path), 'utf8').catch(absent(path, place))
    if (there !== undefined && !there.startsWith(begins)) {
      throw new CommandError(
        `${path} exists and was not written by this command. Move it away, or give another ${place}.`
      )
    }
  }
  let target = folder
  try {
    await makeFolder(resolve(cwd, folder))
    for (const [i, { text }] of files.entries()) {
      target = String(paths[i])
      await writeFile(resolve(cwd, target), text)
    }
    return paths
  } catch (cause) {
    throw notWritten(target, place, cause)
  }
}

/** Writes a new file, whole or not at all. Rejects with EEXIST if a file or a link has that path. */
export async function writeNew(path: string, content: string | Uint8Array): Promise<void> {
  try {
    await writeFile(path, content, { flag: 'wx' })
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') await unlink(path).catch(() => {})
    throw error
  }
}

function absent(path: string, place: string): (cause: NodeJS.ErrnoException) => undefined {
  return cause => {
    if (cause.code !== 'ENOENT' && cause.code !== 'ENOTDIR') throw notWritten(path, place, cause)
  }
}

function notWritten(path: string, place: string, cause: unknown): CommandError {
  return new CommandError(`${path} could not be written: ${(cause as Error).message}. Give another ${place}.`, {
    cause
  })
}

/** The polling interval of a watched file. */
const LOOK_MS = 500

/** The coverage of the last test of an agent, in a file beside its module: `.taskchart/coverage/agent.ts.json`. */
interface CoverageFile {
  /** Reads it; `undefined` if it is missing or invalid. */
  read(): Promise<ChartCoverage | undefined>
  /** Writes it, with a `.gitignore`. */
  write(coverage: Omit<ChartCoverage, 'type' | 'chart'>): Promise<void>
  /** Calls `changed` when it changes. Does not keep the process alive. Returns the function that stops it. */
  watch(changed: () => void): () => void
}

/** The coverage file of a module, by the module's path. */
export function coverageFile(module: string): CoverageFile {
  const folder = join(dirname(module), '.taskchart')
  const path = join(folder, 'coverage', `${basename(module)}.json`)
  return {
    read: async () => {
      const text = await readFile(path, 'utf8').catch(() => '')
      return readCoverage(text)
    },
    write: async coverage => {
      await mkdir(dirname(path), { recursive: true })
      await writeFile(join(folder, '.gitignore'), '*\n')
      await writeFile(
        path,
        `${JSON.stringify({ type: 'coverage', chart: 'work', ...coverage } satisfies ChartCoverage, undefined, 2)}\n`
      )
    },
    watch: changed => {
      watchFile(path, { interval: LOOK_MS, persistent: false }, changed)
      return () => unwatchFile(path, changed)
    }
  }
}

function readCoverage(text: string): ChartCoverage | undefined {
  try {
    const value: unknown = JSON.parse(text)
    return isObject(value) && value.type === 'coverage' && isObject(value.reached) && Array.isArray(value.missing)
      ? (value as unknown as ChartCoverage)
      : undefined
  } catch {
    return undefined
  }
}

/**
 * The recorded example beside a module: `agent.example.json` for `agent.ts`. `undefined` if there is none, or, with a
 * warning, if it cannot be read.
 */
export async function readExampleFile(module: string, logger: Logger): Promise<RecordedExample | undefined> {
  const file = join(dirname(module), `${parse(module).name}.example.json`)
  try {
    return readExample(await readFile(file, 'utf8'))
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT')
      logger.warn('the recorded example is not shown', { file, error })
    return undefined
  }
}
