import { unwatchFile, watchFile } from 'node:fs'
import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { isObject } from '../../machines/protocol/codec/json.ts'
import type { Coverage } from './test-result.ts'

/** The polling interval of a watched file. */
const LOOK_MS = 500

/** The coverage of the last test of an agent, in a file beside its module: `.taskchart/coverage/agent.ts.json`. */
export interface CoverageFile {
  /** Reads it; `undefined` if it is missing or invalid. */
  read(): Promise<Coverage | undefined>
  /** Writes it, with a `.gitignore`. */
  write(coverage: Omit<Coverage, 'type' | 'chart'>): Promise<void>
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
        `${JSON.stringify({ type: 'coverage', chart: 'work', ...coverage } satisfies Coverage, undefined, 2)}\n`
      )
    },
    watch: changed => {
      watchFile(path, { interval: LOOK_MS, persistent: false }, changed)
      return () => unwatchFile(path, changed)
    }
  }
}

function readCoverage(text: string): Coverage | undefined {
  try {
    const value: unknown = JSON.parse(text)
    return isObject(value) && value.type === 'coverage' && isObject(value.reached) && Array.isArray(value.missing)
      ? (value as unknown as Coverage)
      : undefined
  } catch {
    return undefined
  }
}
