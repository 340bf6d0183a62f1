/** An SVG element as text. Attributes without a value are omitted; numbers are rounded to one decimal. */
export function element(
  name: string,
  attributes: Readonly<Record<string, string | number | undefined>>,
  content: readonly string[] = []
): string {
  const given = Object.entries(attributes).filter(([, value]) => value !== undefined)
  const opening = [
    name,
    ...given.map(
      ([key, value]) => `${key}="${typeof value === 'number' ? formatDecimal(value) : attributeText(String(value))}"`
    )
  ].join(' ')
  return content.length === 0 ? `<${opening}/>` : `<${opening}>${content.join('')}</${name}>`
}

/**
 * Escaped text for an element: one line, without control and invisible characters, which XML forbids or readers do not
 * see.
 */
export function svgText(text: string): string {
  return escapeMarkup(shownText(text))
}

/** Text in one line, without control and invisible characters. */
export function shownText(text: string): string {
  return text.replace(/\s+/g, ' ').replace(/\p{C}/gu, '').trim()
}

/** A number with at most one decimal. */
export function formatDecimal(value: number): string {
  return String(Math.round(value * 10) / 10)
}

/**
 * An attribute value that a parser reads back unchanged. Characters that XML forbids become the replacement character.
 */
export function attributeText(text: string): string {
  return escapeMarkup(text.replace(/[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\u{10000}-\u{10ffff}]/gu, '\ufffd')).replace(
    /[\t\n\r]/g,
    character => `&#${character.charCodeAt(0)};`
  )
}

const ENTITIES: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;'
}

const CHARACTERS = new Map(Object.entries(ENTITIES).map(([character, entity]) => [entity, character]))

/** The text of an attribute value that {@link attributeText} wrote. */
export function attributeValue(written: string): string {
  return written.replace(
    /&(?:#(\d+)|\w+);/g,
    (entity, code) => CHARACTERS.get(entity) ?? String.fromCharCode(Number(code))
  )
}

/** Text for an element of SVG or HTML, or an attribute in quotes. */
export function escapeMarkup(text: string): string {
  return text.replace(/[&<>"']/g, character => ENTITIES[character] as string)
}
