/** A token of JavaScript or TypeScript. */
export interface Token {
  readonly text: string
  readonly kind: 'word' | 'number' | 'text' | 'template' | 'pattern' | 'sign'
  /** Whether a line ends between the token before it and this one. */
  readonly isOnNewLine: boolean
}

/** The longest signs first. */
const SIGN =
  /^(?:>>>=|\.\.\.|===|!==|\*\*=|<<=|>>=|>>>|&&=|\|\|=|\?\?=|=>|==|!=|<=|>=|&&|\|\||\?\?|\?\.|\+\+|--|\+=|-=|\*=|\/=|%=|&=|\|=|\^=|<<|>>|\*\*|[^])/
const WORD = /^#?[\p{ID_Start}$_][\p{ID_Continue}$\u200c\u200d]*/u
const NUMBER = /^(?:0[xXbBoO]\w+|(?:\d|\.\d)(?:[\w.]|(?<=[eE])[+-])*)/
const PATTERN = /^\/(?![*/])(?:[^\\/[\n]|\\.|\[(?:[^\]\\\n]|\\.)*\])+\/\w*/
const TEXT = /^(?:'(?:[^'\\\n]|\\[^])*'|"(?:[^"\\\n]|\\[^])*")/

/** Words after which a slash begins a pattern. */
const BEFORE_PATTERN = new Set('return typeof case delete void throw new instanceof do else in'.split(' '))
/** Words of a head in parentheses, after which a slash begins a pattern. */
const HEADS = new Set(['if', 'while', 'for', 'with'])
/** Words after which the end of a line ends a statement or a member, or may. */
const RESTRICTED = new Set(
  'return throw break continue yield async await using get set static let of accessor type'.split(' ')
)

/**
 * The tokens of a source text, without comments and layout. `undefined` if that cannot be told, as with JSX, or where a
 * slash may begin a pattern or divide.
 */
export function tokensOf(source: string): Token[] | undefined {
  const tokens: Token[] = []
  /** The open brackets: the sign, or a template, and the word before a parenthesis. */
  const open: { readonly sign: string; readonly head: string }[] = []
  let closedHead = ''
  let isOnNewLine = false
  let at = 0
  const take = (kind: Token['kind'], text: string) => {
    tokens.push({ kind, text, isOnNewLine })
    isOnNewLine = false
    at += text.length
  }
  const templatePart = (): boolean => {
    const [part] = /^[^`\\$]*(?:(?:\\[^]|\$(?!\{))[^`\\$]*)*(?:`|\$\{)/.exec(source.slice(at)) ?? []
    if (part === undefined) return false
    if (part.endsWith('${')) open.push({ sign: 'template', head: '' })
    take('template', part)
    return true
  }
  while (at < source.length) {
    const rest = source.slice(at, at + 4000)
    const [space] = /^(?:\s+|\/\/[^\n\r\u2028\u2029]*|<!--.*|#!.*)/.exec(rest) ?? []
    const [comment] = source.startsWith('/*', at) ? (/^\/\*[^]*?\*\//.exec(source.slice(at)) ?? ['']) : []
    if (comment === '' || (space?.startsWith('#!') && at > 0) || space?.startsWith('<!--')) return undefined
    const skipped = space ?? comment
    if (skipped !== undefined) {
      isOnNewLine ||= /[\n\r\u2028\u2029]/.test(skipped)
      at += skipped.length
      continue
    }
    const last = tokens.at(-1)
    const first = rest.charAt(0)
    if (first === '`') {
      take('template', '`')
      if (!templatePart()) return undefined
      continue
    }
    if (first === "'" || first === '"') {
      const [text] = TEXT.exec(source.slice(at)) ?? []
      if (text === undefined) return undefined
      take('text', text)
      continue
    }
    const [word = NUMBER.exec(rest)?.[0]] = WORD.exec(rest) ?? []
    if (word !== undefined) {
      take(/^[\d.]/.test(word) ? 'number' : 'word', word)
      continue
    }
    if (first === '/') {
      const meaning = slashAfter(tokens, closedHead)
      if (meaning === undefined) return undefined
      if (meaning === 'pattern') {
        const [pattern] = PATTERN.exec(source.slice(at)) ?? []
        if (pattern === undefined) return undefined
        take('pattern', pattern)
        continue
      }
    }
    const [sign] = SIGN.exec(rest) as RegExpExecArray
    // An escape in a name.
    if (sign === '\\') return undefined
    if (sign === '}' && open.at(-1)?.sign === 'template') {
      open.pop()
      take('template', '}')
      if (!templatePart()) return undefined
      continue
    }
    if ('([{'.includes(sign)) open.push({ sign, head: last?.kind === 'word' ? last.text : '' })
    if (')]}'.includes(sign)) {
      const opening = open.pop()
      if (opening === undefined || !['()', '[]', '{}'].includes(`${opening.sign}${sign}`)) return undefined
      closedHead = sign === ')' ? opening.head : ''
    }
    take('sign', sign)
  }
  return open.length === 0 ? tokens : undefined
}

/** The meaning of a slash after these tokens; `undefined` if it depends on more than them. */
function slashAfter(tokens: readonly Token[], closedHead: string): 'pattern' | 'division' | undefined {
  const [before, last] = [tokens.at(-2), tokens.at(-1)]
  if (last === undefined) return 'pattern'
  if (last.kind === 'word') {
    if (BEFORE_PATTERN.has(last.text)) return 'pattern'
    return ['of', 'yield', 'await'].includes(last.text) ? undefined : 'division'
  }
  if (last.kind !== 'sign' || last.text === ']') return 'division'
  if (last.text === ')') return HEADS.has(closedHead) ? 'pattern' : 'division'
  if (['}', '++', '--'].includes(last.text)) return undefined
  // TypeScript writes it after a value, too.
  const isAfterValue =
    before?.kind === 'word' ? !BEFORE_PATTERN.has(before.text) : [')', ']'].includes(before?.text ?? '')
  return last.text === '!' && isAfterValue ? undefined : 'pattern'
}

/**
 * A source text without comments and layout, equal for texts that mean the same in spite of them. A text whose tokens
 * cannot be told stays as it is.
 */
export function plainSource(source: string): string {
  const tokens = tokensOf(source)
  return tokens ? joinedTokens(tokens) : source
}

/** Tokens as text. Line ends stay where they may mean something, and commas before a closing bracket go. */
export function joinedTokens(tokens: readonly Token[]): string {
  return tokens
    .filter(({ text, kind }, i) => {
      const [before, next] = [tokens[i - 1]?.text ?? '', tokens[i + 1]]
      const isLast = kind === 'sign' && text === ',' && next?.kind === 'sign' && [')', ']', '}'].includes(next.text)
      return !isLast || [',', '[', '(', '{'].includes(before)
    })
    .map(({ text, isOnNewLine }, i, all) => {
      if (i === 0) return text
      const before = all[i - 1] as Token
      const isMeant = isOnNewLine && (RESTRICTED.has(before.text) || ['++', '--', '=>'].includes(text))
      return `${isMeant ? '\n' : ' '}${text}`
    })
    .join('')
}

/** Words that name nothing. */
export const RESERVED = new Set(
  'async await break case catch class const continue debugger default delete do else enum export extends false finally for function if import in instanceof let new null return static super switch this throw true try typeof undefined var void while with yield'.split(
    ' '
  )
)

/**
 * The names that a source text mentions, without those of members and keys; all words of it if its tokens cannot be
 * told.
 */
export function mentionedNames(source: string): Set<string> {
  const tokens = tokensOf(source)
  if (!tokens)
    return new Set(source.match(/[\p{ID_Start}$_][\p{ID_Continue}$]*/gu)?.filter(word => !RESERVED.has(word)))
  return new Set(
    tokens.flatMap(({ kind, text }, i) => {
      const [before = '', after] = [tokens[i - 1]?.text, tokens[i + 1]?.text]
      const isMember = ['.', '?.'].includes(before) || (['{', ','].includes(before) && after === ':')
      return kind === 'word' && !isMember && !RESERVED.has(text) ? [text] : []
    })
  )
}
