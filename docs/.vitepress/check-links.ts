import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'

/** Throws an error that names every link of the built pages that leads to no file, or to no heading of its page. */
export function checkLinks(site: string, base: string): void {
  const pages = readdirSync(site, { recursive: true, encoding: 'utf8' }).filter(name => name.endsWith('.html'))
  const texts = new Map(pages.map(page => [page, readFileSync(join(site, page), 'utf8')]))
  const ids = new Map(Array.from(texts, ([page, text]) => [page, new Set(Array.from(text.matchAll(/ (?:id|name)="([^"]+)"/g), ([, id]) => id))]))
  const dead = Array.from(texts).flatMap(([page, text]) => {
    const links = new Set(Array.from(text.matchAll(/ (?:href|src)="([^"]+)"/g), ([, link = '']) => link.replaceAll('&amp;', '&')))
    return [...links].filter(link => !/^(?:[a-z]+:|\/\/)/i.test(link) && !leadsSomewhere(page, link)).map(link => `${page}: ${link}`)
  })
  if (dead.length > 0) throw new TypeError(`These links lead nowhere:\n${dead.join('\n')}`)

  function leadsSomewhere(page: string, link: string): boolean {
    const [path = '', hash = ''] = link.split('#')
    const target = path === '' ? page : path.startsWith(base) ? path.slice(base.length) : join(dirname(page), path)
    const file = relative('.', /\/$|^$/.test(target) ? `${target}index.html` : target)
    return existsSync(join(site, file)) && (hash === '' || (ids.get(file)?.has(decodeURIComponent(hash)) ?? false))
  }
}
