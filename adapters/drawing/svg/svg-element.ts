/** An element of SVG as text, with what is in it; attributes without a value are left out. Numbers have one decimal at the most. */
export function element(name: string, attributes: Readonly<Record<string, string | number | undefined>>, content: readonly string[] = []): string {
  const given = Object.entries(attributes).filter(([, value]) => value !== undefined)
  const opening = [name, ...given.map(([key, value]) => `${key}="${typeof value === 'number' ? rounded(value) : attributeText(String(value))}"`)].join(' ')
  return content.length === 0 ? `<${opening}/>` : `<${opening}>${content.join('')}</${name}>`
}

/** Text between tags: in one line, without control and invisible characters, which XML and readers have no use for. */
export function svgText(text: string): string {
  return escaped(shownText(text))
}

/** Text as a drawing can show it. */
export function shownText(text: string): string {
  return text.replace(/\s+/g, ' ').replace(/\p{C}/gu, '').trim()
}

/** A number as drawings have it. */
export function rounded(value: number): string {
  return String(Math.round(value * 10) / 10)
}

/** An attribute's value, which has to be what it was when it is read again; what XML cannot have is a replacement character. */
function attributeText(text: string): string {
  return escaped(text.replace(/[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\u{10000}-\u{10ffff}]/gu, '\ufffd')).replace(/[\t\n\r]/g, character => `&#${character.charCodeAt(0)};`)
}

const ENTITIES: Readonly<Record<string, string>> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;', "'": '&#39;' }

function escaped(text: string): string {
  return text.replace(/[&<>"']/g, character => ENTITIES[character] as string)
}
