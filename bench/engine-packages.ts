import { execFile } from 'node:child_process'
import { mkdir, mkdtemp, rename, rm, stat, writeFile } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { promisify } from 'node:util'

/** An engine of durable workflows: its name with the version, and its packages from npm. */
export interface EnginePackages {
  readonly name: string
  readonly packages: readonly string[]
}

export const DBOS: EnginePackages = { name: 'DBOS 5.3.0', packages: ['@dbos-inc/dbos-sdk@5.3.0'] }

export const RESTATE: EnginePackages = {
  name: 'Restate 1.7.12',
  packages: ['@restatedev/restate-server@1.7.12', '@restatedev/restate-sdk@1.17.2']
}

/** Asks tools and servers not to report their use to anybody. */
export const NO_TELEMETRY = { DO_NOT_TRACK: '1', SCARF_ANALYTICS: 'false', RESTATE_DISABLE_TELEMETRY: 'true' }

/** Installed engines are kept here. npm runs the benchmark in the folder of the clone. */
const CACHE = resolve('node_modules/.cache/taskchart-bench')

/**
 * Installs the packages of an engine into a folder of their own, or finds them there, and gives its path. They are no
 * dependencies: only who runs this benchmark gets them. No script of a package runs. Rejects if npm cannot get them.
 */
export async function installEngine({ name, packages }: EnginePackages): Promise<string> {
  const folder = join(CACHE, name.replaceAll(' ', '-'))
  if (await stat(folder).catch(() => undefined)) return folder
  await mkdir(CACHE, { recursive: true })
  const unfinished = await mkdtemp(join(CACHE, 'unfinished-'))
  try {
    await writeFile(join(unfinished, 'package.json'), '{"private":true}')
    const options = ['--no-save', '--ignore-scripts', '--no-audit', '--no-fund', '--fetch-retries=0']
    await promisify(execFile)('npm', ['install', '--prefix', unfinished, ...options, ...packages], {
      cwd: unfinished,
      env: { ...process.env, ...NO_TELEMETRY }
    })
    await rename(unfinished, folder)
    return folder
  } finally {
    await rm(unfinished, { recursive: true, force: true })
  }
}
