import type { MarkdownRenderer } from 'vitepress'
import { dirname, relative } from 'node:path'
import { fileOf, isRelative, pageOf, SOURCE } from './repository.ts'

/** The slug of a heading as GitHub makes it, so that one link works on both. */
export function slugify(heading: string): string {
  return heading.trim().toLowerCase().replaceAll(/[^\p{L}\p{N}_\- ]/gu, '').replaceAll(' ', '-')
}

/** Leads the relative links of pages, which are right in the repository, to the pages and pictures of the site. */
export function rewriteLinks(markdown: MarkdownRenderer): void {
  markdown.core.ruler.push('rewrite-links', ({ tokens, env }) => {
    const page = String(env.relativePath)
    for (const token of tokens.flatMap(({ children }) => children ?? [])) {
      const href = token.attrGet('href')
      if (token.type === 'link_open' && href !== null && isRelative(href)) token.attrSet('href', linkTo(page, href))
      const picture = token.attrGet('src')
      if (token.type === 'image' && picture !== null && isRelative(picture) && page.startsWith(`${SOURCE}/`)) token.attrSet('src', pictureTo(page, picture))
    }
  })
}

function linkTo(page: string, href: string): string {
  if (page.startsWith('api/')) return href
  const [path = '', hash] = href.split('#')
  const target = pageOf(fileOf(page), path)
  // The site's first page.
  return `/${target === 'README.md' ? 'index.md' : target}${hash === undefined ? '' : `#${hash}`}`
}

function pictureTo(page: string, path: string): string {
  return relative(dirname(page), pageOf(fileOf(page), path))
}
