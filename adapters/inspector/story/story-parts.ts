import type { Part } from '../../../machines/protocol/objects.ts'
import { element, escapeMarkup } from '../../drawing/svg-element.ts'
import type { Redact } from '../recorder/seen-step.ts'

/** Image types that browsers show. An `img` element never runs scripts, also of SVG. */
export const PICTURES: ReadonlySet<string> = new Set([
  'image/png',
  'image/jpeg',
  'image/gif',
  'image/webp',
  'image/avif',
  'image/svg+xml',
  'image/bmp'
])

/**
 * An HTML element as text: its content is HTML, its attributes are escaped. An element without content has an end tag
 * too.
 */
export function html(
  name: string,
  attributes: Readonly<Record<string, string | undefined>>,
  ...content: readonly string[]
): string {
  return element(name, attributes, content.length === 0 ? [''] : content)
}

/** Escaped text, with its lines and without control characters. */
export function plainText(text: string): string {
  return escapeMarkup(text.replace(/[^\P{C}\n\t]/gu, ''))
}

/**
 * Parts as HTML: text, JSON, pictures, links, files to save. Nothing in them is read as HTML, and nothing is loaded
 * from elsewhere.
 */
export function partsHtml(parts: readonly Part[], redact: Redact): string {
  return parts.map(part => partHtml(part, redact)).join('')
}

function partHtml(part: Part, redact: Redact): string {
  const shown = (text: string) => plainText(String(redact(text)))
  const { filename = '', mediaType = '' } = part
  if ('text' in part) return html('pre', { class: 'text' }, shown(part.text))
  if ('data' in part)
    return html('pre', { class: 'data' }, plainText(JSON.stringify({ data: redact(part.data) }, undefined, 2)))
  if ('url' in part)
    return html(
      'p',
      {},
      isWeb(part.url)
        ? html('a', { href: String(redact(part.url)), rel: 'noopener noreferrer' }, shown(filename || part.url))
        : html('code', {}, shown(part.url))
    )
  const name = filename || 'file'
  // Not with its own type: opened in a tab, it could be a page.
  const save = html('a', { href: `data:application/octet-stream;base64,${part.raw}`, download: name }, plainText(name))
  const picture = PICTURES.has(mediaType) ? html('img', { src: `data:${mediaType};base64,${part.raw}`, alt: name }) : ''
  return html('figure', {}, picture, html('figcaption', {}, save, ` ${plainText(mediaType)}`))
}

/** Whether a URL is one of the web: with http: or https:. */
export function isWeb(url: string): boolean {
  return URL.canParse(url) && ['http:', 'https:'].includes(new URL(url).protocol)
}
