import { mkdir, stat } from 'node:fs/promises'
import { join, parse, relative, sep } from 'node:path'

/**
 * Creates a folder and its parents, with this mode. `path` is absolute. Rejects with Node's error if that is impossible. Node's own
 * `recursive` never returns for a new folder in /proc.
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
