import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Section } from './contents.ts'

/** Writes llms.txt, the pages with their first sentences, and llms-full.txt, all of their text, for programs that read documentation. */
export function writeLlms(docs: string, site: string, base: string, sections: readonly Section[], summary: string): void {
  const listed = sections.map(({ title, entries }) => ({ title, entries: entries.filter(({ hash }) => hash === '') }))
  const line = ({ title, page, about }: Section['entries'][number]) => `- [${title}](${base}${page.replace(/\.md$/, '.html')}): ${firstSentence(read(docs, page)) || about}`
  const lists = listed.map(({ title, entries }) => `## ${title}\n\n${entries.map(line).join('\n')}`)
  writeFileSync(join(site, 'llms.txt'), `# taskchart\n\n> ${summary}\n\n${lists.join('\n\n')}\n`)
  writeFileSync(join(site, 'llms-full.txt'), listed.flatMap(({ entries }) => entries.map(({ page }) => read(docs, page))).join('\n\n'))
}

function read(docs: string, page: string): string {
  return readFileSync(join(docs, page), 'utf8').trim()
}

/** The first sentence of the first paragraph, without links. */
export function firstSentence(text: string): string {
  const [paragraph = ''] = text.split(/\n\n+/).filter(block => /^[\w`[]/.test(block))
  const words = paragraph.replaceAll(/\s+/g, ' ').replaceAll(/\[([^\]]*)\]\([^)]*\)/g, '$1').replaceAll(/\*([^*]+)\*/g, '$1').replace(/:$/, '.')
  return /^.*?[.!?](?= |$)/.exec(words)?.[0] ?? words
}
