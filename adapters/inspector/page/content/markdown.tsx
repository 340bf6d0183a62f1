import { lexer, type Token, type Tokens } from 'marked'
import type { ComponentChildren, JSX } from 'preact'
import { useMemo } from 'preact/hooks'
import { isWeb } from '../../story/story-parts.ts'

/** The longest text that is read as Markdown, in characters. */
const LONGEST = 30_000

/** The deepest nesting that is shown. */
const DEEPEST = 16

/**
 * Markdown as elements. HTML in it is text, only http: and https: URLs are links, and pictures are links too: nothing
 * is loaded.
 */
export function Markdown({ text }: { readonly text: string }) {
  const tokens = useMemo(() => tokensOf(text), [text])
  return tokens ? <div class="markdown">{blocks(tokens, 0)}</div> : <p class="part-text">{text}</p>
}

/** The blocks of a text; `undefined` if it is too long or too deeply nested. */
function tokensOf(text: string): Token[] | undefined {
  if (text.length > LONGEST || /^[ \t]*(?:[>*+-][ \t]*){40}/m.test(text)) return undefined
  try {
    return lexer(text, { gfm: true, breaks: true })
  } catch {
    return undefined
  }
}

function blocks(tokens: readonly Token[] = [], depth: number): ComponentChildren {
  return depth > DEEPEST
    ? tokens.map(({ raw }) => raw).join('')
    : tokens.map((token, i) => <Block key={i} token={token} depth={depth + 1} />)
}

function Block({ token, depth }: { readonly token: Token; readonly depth: number }): JSX.Element | null {
  switch (token.type) {
    case 'space':
    case 'def':
      return null
    case 'heading':
      return (
        <p
          class={`heading-${Math.min(3, (token as Tokens.Heading).depth)}`}
          role="heading"
          aria-level={3 + Math.min(3, (token as Tokens.Heading).depth)}
        >
          {inlines(token.tokens, depth)}
        </p>
      )
    case 'hr':
      return <hr />
    case 'code':
      return (
        <pre class="part-data" tabIndex={0}>
          <code>{(token as Tokens.Code).text}</code>
        </pre>
      )
    case 'blockquote':
      return <blockquote>{blocks(token.tokens, depth)}</blockquote>
    case 'list':
      return <List list={token as Tokens.List} depth={depth} />
    case 'table':
      return <Table table={token as Tokens.Table} depth={depth} />
    case 'paragraph':
    case 'text':
      return token.type === 'paragraph' || depth === 1 ? (
        <p>{inlines(token.tokens ?? [token], depth)}</p>
      ) : (
        <>{inlines(token.tokens ?? [token], depth)}</>
      )
    default:
      return <p class="part-text">{token.raw}</p>
  }
}

function List({ list: { ordered, start, items }, depth }: { readonly list: Tokens.List; readonly depth: number }) {
  const rows = items.map((item, i) => (
    <li key={i}>
      {item.task && (
        <span aria-label={item.checked ? 'done' : 'open'} role="img">
          {item.checked ? '☑ ' : '☐ '}
        </span>
      )}
      {blocks(
        item.tokens.filter(({ type }) => type !== 'checkbox'),
        depth
      )}
    </li>
  ))
  return ordered ? <ol start={Number(start) || 1}>{rows}</ol> : <ul>{rows}</ul>
}

function Table({ table: { header, rows }, depth }: { readonly table: Tokens.Table; readonly depth: number }) {
  return (
    <div class="table-box" tabIndex={0} role="region" aria-label="Table">
      <table>
        <thead>
          <tr>
            {header.map((cell, i) => (
              <th key={i} scope="col">
                {inlines(cell.tokens, depth)}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row, i) => (
            <tr key={i}>
              {row.map((cell, j) => (
                <td key={j}>{inlines(cell.tokens, depth)}</td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  )
}

function inlines(tokens: readonly Token[] = [], depth: number): ComponentChildren {
  return depth > DEEPEST
    ? tokens.map(({ raw }) => raw).join('')
    : tokens.map((token, i) => <Inline key={i} token={token} depth={depth + 1} />)
}

function Inline({ token, depth }: { readonly token: Token; readonly depth: number }): JSX.Element {
  switch (token.type) {
    case 'strong':
      return <b>{inlines(token.tokens, depth)}</b>
    case 'em':
      return <i>{inlines(token.tokens, depth)}</i>
    case 'del':
      return <s>{inlines(token.tokens, depth)}</s>
    case 'codespan':
      return <code>{(token as Tokens.Codespan).text}</code>
    case 'br':
      return <br />
    case 'link':
      return (
        <WebLink url={(token as Tokens.Link).href} raw={token.raw}>
          {inlines(token.tokens, depth)}
        </WebLink>
      )
    case 'image':
      return (
        <WebLink
          url={(token as Tokens.Image).href}
          raw={token.raw}
        >{`picture: ${(token as Tokens.Image).text || (token as Tokens.Image).href}`}</WebLink>
      )
    case 'escape':
      return <>{(token as Tokens.Escape).text}</>
    case 'text':
      return token.tokens ? <>{inlines(token.tokens, depth)}</> : <>{decodedText((token as Tokens.Text).text)}</>
    default:
      return <>{token.raw}</>
  }
}

/** A link to the web; any other URL stays text. */
function WebLink({
  url,
  raw,
  children
}: {
  readonly url: string
  readonly raw: string
  readonly children: ComponentChildren
}) {
  return isWeb(url) ? (
    <a href={url} target="_blank" rel="noopener noreferrer">
      {children}
    </a>
  ) : (
    <>{raw}</>
  )
}

const ENTITIES: Readonly<Record<string, string>> = { amp: '&', lt: '<', gt: '>', quot: '"', apos: "'", nbsp: '\u00a0' }

/** Text with its few named and numeric HTML entities as characters. */
function decodedText(text: string): string {
  return text.replaceAll(
    /&(?:(amp|lt|gt|quot|apos|nbsp)|#(\d{1,6}));/g,
    (whole, name: string | undefined, code: string | undefined) => {
      if (name !== undefined) return ENTITIES[name] ?? whole
      return Number(code) > 31 && Number(code) < 0xd800 ? String.fromCharCode(Number(code)) : whole
    }
  )
}
