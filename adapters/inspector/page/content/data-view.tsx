import { isObject } from '../../../../machines/protocol/codec/json.ts'
import { jsonText } from '../wording.ts'

/** The maximum number of rows and columns of a table. */
const MOST_ROWS = 200
const MOST_COLUMNS = 20

/** The longest JSON text that is shown. */
const LONGEST_TEXT = 100_000

/** JSON by its shape: objects as fields, lists of objects as tables, all else as text. */
export function DataView({ data }: { readonly data: unknown }) {
  if (isTable(data)) {
    const columns = [...new Set(data.slice(0, MOST_ROWS).flatMap(row => Object.keys(row)))].slice(0, MOST_COLUMNS)
    return (
      <TableView
        head={columns}
        rows={data
          .slice(0, MOST_ROWS)
          .map(row => columns.map(name => cellText(Object.hasOwn(row, name) ? row[name] : undefined)))}
        count={data.length}
      />
    )
  }
  if (isFields(data)) return <FieldsView fields={data} titles={new Map()} />
  if (typeof data === 'string') return <p class="part-text">{data.slice(0, LONGEST_TEXT)}</p>
  return (
    <pre class="part-data" tabIndex={0}>
      {jsonText(data).slice(0, LONGEST_TEXT)}
    </pre>
  )
}

/** Named values, with the titles of a schema. */
export function FieldsView({
  fields,
  titles
}: {
  readonly fields: Readonly<Record<string, unknown>>
  readonly titles: ReadonlyMap<string, string>
}) {
  return (
    <dl class="data-fields">
      {Object.entries(fields).map(([name, value]) => (
        <div key={name}>
          <dt>{titles.get(name) ?? name}</dt>
          <dd>{cellText(value)}</dd>
        </div>
      ))}
    </dl>
  )
}

/** A table, which scrolls sideways. */
export function TableView({
  head,
  rows,
  count
}: {
  readonly head: readonly string[]
  readonly rows: readonly (readonly string[])[]
  readonly count: number
}) {
  return (
    <div class="table-box" tabIndex={0} role="region" aria-label="Table">
      <table>
        <thead>
          <tr>
            {head.map((name, i) => (
              <th key={i} scope="col">
                {name}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row, i) => (
            <tr key={i}>
              {row.map((cell, j) => (
                <td key={j}>{cell}</td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
      {count > rows.length && <p class="quiet">{`The first ${rows.length} of ${count} rows.`}</p>}
    </div>
  )
}

/** The titles of an object's members in its JSON Schema, which is untrusted. */
export function titlesIn(schema: unknown): ReadonlyMap<string, string> {
  const properties = isObject(schema) && isObject(schema['properties']) ? schema['properties'] : {}
  return new Map(
    Object.entries(properties).flatMap(([name, one]) =>
      isObject(one) && typeof one['title'] === 'string' ? [[name, one['title']] as const] : []
    )
  )
}

function isTable(data: unknown): data is Record<string, unknown>[] {
  return Array.isArray(data) && data.length > 0 && data.every(row => isFields(row))
}

/** Whether an object has only simple values, and not too many. */
function isFields(data: unknown): data is Record<string, unknown> {
  if (!isObject(data) || Array.isArray(data)) return false
  const values = Object.values(data)
  return (
    values.length > 0 &&
    values.length <= MOST_COLUMNS &&
    values.every(value => value === null || typeof value !== 'object')
  )
}

function cellText(value: unknown): string {
  if (value === undefined) return ''
  return typeof value === 'string' ? value : (JSON.stringify(value) ?? '')
}
