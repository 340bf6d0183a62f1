import { statSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'

/** The root of the repository. */
export const REPOSITORY = fileURLToPath(new URL('../../', import.meta.url))

/** The folder of the site for files of the repository that are outside of docs/. */
export const SOURCE = 'source'

/** The file of the repository that a page of the site shows, with `.md` added to code, and `/index.md` to folders. */
export function fileOf(page: string): string {
  return page.startsWith(`${SOURCE}/`) ? page.slice(SOURCE.length + 1) : `docs/${page}`
}

/** The page of the site for what a file of the repository links to, `path` relative to that file. */
export function pageOf(file: string, path: string): string {
  const target = join(dirname(file), path)
  if (target.startsWith('docs/')) return target.slice('docs/'.length)
  if (target.endsWith('.md')) return `${SOURCE}/${target}`
  return `${SOURCE}/${target.replace(/\/$/, '')}${statSync(resolve(REPOSITORY, target)).isDirectory() ? '/index' : ''}.md`
}

/** Whether a link leads to another file of the repository. */
export function isRelative(link: string): boolean {
  return !/^(?:[a-z]+:|#|\/)/i.test(link)
}
