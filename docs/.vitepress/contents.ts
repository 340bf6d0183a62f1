import { readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { pageOf, REPOSITORY } from './repository.ts'

export interface Entry {
  readonly title: string
  /** Its page as a file of the site, such as `http.md` or `source/README.md`. */
  readonly page: string
  /** `#` and the heading, if the entry is one section of its page. */
  readonly hash: string
  /** Its description in docs/README.md; may be empty. */
  readonly about: string
}

export interface Section {
  readonly title: string
  readonly entries: readonly Entry[]
}

/** The pages in reading order: the headings and the list entries of docs/README.md, from which the sidebar and llms.txt are made. */
export function readContents(): Section[] {
  const [, ...sections] = readFileSync(resolve(REPOSITORY, 'docs/README.md'), 'utf8').split(/^## /m)
  return sections.map(section => ({
    title: section.slice(0, section.indexOf('\n')),
    entries: Array.from(section.matchAll(/^- \[([^\]]+)\]\(([^)#]+)(#[^)]*)?\)(?:: (.*))?$/gm), ([, title = '', path = '', hash = '', about = '']) => ({
      title, page: pageOf('docs/README.md', path), hash, about
    }))
  }))
}
