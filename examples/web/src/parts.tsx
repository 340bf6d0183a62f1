import { offerIn, type Part } from 'taskchart/client'

/** The parts of a message or an artifact. All of it is untrusted: React escapes text, and nothing else becomes HTML. */
export function Parts({ parts, name }: { readonly parts: readonly Part[]; readonly name?: string }) {
  return parts.map((part, i) => <OnePart key={i} part={part} name={name} />)
}

function OnePart({ part, name }: { readonly part: Part; readonly name: string | undefined }) {
  const { filename = name ?? 'file', mediaType = '' } = part
  if ('text' in part)
    return mediaType === 'text/csv' ? (
      <Csv text={part.text} />
    ) : (
      <p className="text" dir="auto">
        {part.text}
      </p>
    )
  if ('data' in part) return <Data part={part} value={part.data} />
  if ('url' in part) return <Link url={part.url} label={part.filename ?? part.url} />
  // An <img> runs no script of an SVG, and loads nothing for it.
  if (PICTURES.includes(mediaType)) return <img src={`data:${mediaType};base64,${part.raw}`} alt={filename} />
  return (
    <a className="file" download={filename} href={`data:application/octet-stream;base64,${part.raw}`}>
      {filename}
    </a>
  )
}

/** Terms and answers of a negotiation are data parts too. */
function Data({ part, value }: { readonly part: Part; readonly value: unknown }) {
  const offer = offerIn({ parts: [part] })
  const move = isObject(value) ? value['urn:taskchart:extension:negotiation:1'] : undefined
  if (offer) return <Value value={offer.terms} />
  if (isObject(move))
    return <p className="text">{'accept' in move ? 'Accepted' : 'decline' in move ? 'Declined' : 'Proposed'}</p>
  return <Value value={value} />
}

const PICTURES = ['image/png', 'image/jpeg', 'image/gif', 'image/webp', 'image/avif', 'image/svg+xml']

/** A link, if its address is one of the web. Any other, such as `javascript:`, is text. */
function Link({ url, label }: { readonly url: string; readonly label: string }) {
  const isOfWeb = URL.canParse(url) && /^https?:$/.test(new URL(url).protocol)
  return isOfWeb ? (
    <a href={url} target="_blank" rel="noopener noreferrer">
      {label}
    </a>
  ) : (
    <p className="text">{url}</p>
  )
}

/** Data: a list of objects is a table, an object is a table of its members, and the rest is text. */
export function Value({ value }: { readonly value: unknown }) {
  if (Array.isArray(value) && value.length > 0 && value.every(isObject)) {
    const columns = [...new Set(value.slice(0, MOST.rows).flatMap(row => Object.keys(row)))].slice(0, MOST.columns)
    return <Rows head={columns} rows={value} cells={row => columns.map(column => shown(row[column]))} />
  }
  if (!isObject(value))
    return (
      <p className="text" dir="auto">
        {shown(value)}
      </p>
    )
  return <Rows rows={Object.entries(value)} cells={([name, member]) => [name, shown(member)]} />
}

/** The size up to which a table stays usable. */
const MOST = { rows: 200, columns: 50 }

/** A table. Without a heading, the first cell of each row is its name. */
function Rows<Row>({
  head,
  rows,
  cells
}: {
  readonly head?: readonly string[]
  readonly rows: readonly Row[]
  readonly cells: (row: Row) => readonly string[]
}) {
  return (
    <div className="scroll">
      <table>
        {head && (
          <thead>
            <tr>
              {head.map((cell, i) => (
                <th key={i} scope="col">
                  {cell}
                </th>
              ))}
            </tr>
          </thead>
        )}
        <tbody>
          {rows.slice(0, MOST.rows).map((row, i) => (
            <tr key={i}>
              {cells(row).map((cell, j) =>
                head || j > 0 ? (
                  <td key={j}>{cell}</td>
                ) : (
                  <th key={j} scope="row">
                    {cell}
                  </th>
                )
              )}
            </tr>
          ))}
        </tbody>
      </table>
      {rows.length > MOST.rows && (
        <p className="hint">
          {MOST.rows} of {rows.length} rows
        </p>
      )}
    </div>
  )
}

function Csv({ text }: { readonly text: string }) {
  const [head = '', ...lines] = text.trim().split(/\r?\n/)
  return <Rows head={cellsOf(head)} rows={lines} cells={cellsOf} />
}

/** The cells of a line of CSV, with quotes. */
function cellsOf(line: string): string[] {
  const cells = Array.from(
    line.matchAll(/(?:^|,)(?:"((?:[^"]|"")*)"|([^,]*))/g),
    ([, quoted, plain = '']) => quoted?.replaceAll('""', '"') ?? plain
  )
  return cells.slice(0, MOST.columns)
}

export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function shown(value: unknown): string {
  if (Array.isArray(value) && value.every(element => typeof element !== 'object')) return value.join(', ')
  return typeof value === 'string' ? value : value === undefined ? '' : JSON.stringify(value, null, 1)
}
