import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, extname, join, resolve } from 'node:path'
import { fileOf, isRelative, pageOf, REPOSITORY, SOURCE } from './repository.ts'

const LINK = /\]\(([^)\s#]+)(?:#[^)\s]*)?\)/g

/**
 * Writes a page into docs/source for each file outside of docs/ that a page links to, directly or through another. Markdown stays as it
 * is, code becomes a block, and a folder becomes a list. So the site needs no address of the repository.
 */
export function writeSourcePages(docs: string): void {
  rmSync(join(docs, SOURCE), { recursive: true, force: true })
  const waiting = readdirSync(docs).filter(name => name.endsWith('.md')).flatMap(name => linksOf(`docs/${name}`, readFileSync(join(docs, name), 'utf8')))
  const written = new Set<string>()
  for (let page = waiting.pop(); page !== undefined; page = waiting.pop()) {
    if (written.has(page)) continue
    written.add(page)
    const file = fileOf(page)
    const text = textOf(page, file)
    mkdirSync(dirname(join(docs, page)), { recursive: true })
    writeFileSync(join(docs, page), text)
    if (file.endsWith('.md')) waiting.push(...linksOf(file, text))
    if (isFolder(page)) waiting.push(...readdirSync(resolve(REPOSITORY, dirname(file))).map(name => pageOf(file, name)))
  }
}

/** The source pages that a file links to. */
function linksOf(file: string, text: string): string[] {
  const links = Array.from(text.matchAll(LINK), ([, link = '']) => link).filter(isRelative)
  return links.map(link => pageOf(file, link)).filter(page => page.startsWith(`${SOURCE}/`))
}

function textOf(page: string, file: string): string {
  const path = resolve(REPOSITORY, file)
  if (existsSync(path)) return readFileSync(path, 'utf8')
  if (isFolder(page)) return `# ${dirname(file)}\n\n${readdirSync(dirname(path)).map(name => `- [${name}](${name})`).join('\n')}\n`
  const code = file.replace(/\.md$/, '')
  return `# ${code}\n\n\`\`\`\`${extname(code).slice(1)}\n${readFileSync(resolve(REPOSITORY, code), 'utf8')}\`\`\`\`\n`
}

function isFolder(page: string): boolean {
  return page.endsWith('/index.md')
}
