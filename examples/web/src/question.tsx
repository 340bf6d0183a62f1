import { useState, type FormEvent, type ReactNode } from 'react'
import { isObject } from './parts.tsx'

/** A JSON Schema from an agent: untrusted, so that every member is looked at before it is used. */
type Schema = Record<string, unknown>

interface FieldProps {
  readonly name: string
  readonly schema: Schema
  readonly isRequired: boolean
  readonly value: unknown
  readonly change: (value: unknown) => void
}

/** A form made of the schema of a question's answer. The agent validates the answer, and says what is wrong with it. */
export function QuestionForm({
  schema,
  isBusy,
  answer
}: {
  readonly schema: Schema
  readonly isBusy: boolean
  readonly answer: (value: unknown) => Promise<void>
}) {
  const [value, setValue] = useState<unknown>(() => first(schema, true))
  const submit = (event: FormEvent) => {
    event.preventDefault()
    // Members that were left out are undefined, which JSON does not have.
    void answer(JSON.parse(JSON.stringify(value ?? null)))
  }
  return (
    <form className="card" onSubmit={submit}>
      <Field name="Answer" schema={schema} isRequired value={value} change={setValue} />
      <div className="buttons">
        <button disabled={isBusy}>Answer</button>
      </div>
    </form>
  )
}

function Field(props: FieldProps) {
  const { name, value } = props
  const schema = withoutNull(props.schema)
  const isNull = props.isRequired && schema !== props.schema
  const isRequired = props.isRequired && !isNull
  const change = isNull ? (value: unknown) => props.change(value ?? null) : props.change
  const label = (
    <>
      {textIn(schema, 'title') ?? name}
      {isRequired ? '' : ' (optional)'}
    </>
  )
  const help = textIn(schema, 'description')
  const note = help !== undefined && <small>{help}</small>
  const own = isObject(value) ? value : {}
  if (isObject(schema['properties'])) {
    const required = Array.isArray(schema['required']) ? schema['required'] : []
    // An optional object that is empty is left out.
    const isNeeded = isRequired || value !== undefined
    const changeMember = (name: string, member: unknown) => {
      const next = { ...own, [name]: member }
      change(isRequired || Object.values(next).some(value => value !== undefined) ? next : undefined)
    }
    return (
      <fieldset>
        <legend>{label}</legend>
        {note}
        {Object.entries(schema['properties']).map(([name, member]) => (
          <Field
            key={name}
            name={name}
            schema={isObject(member) ? member : {}}
            isRequired={isNeeded && required.includes(name)}
            value={own[name]}
            change={value => changeMember(name, value)}
          />
        ))}
      </fieldset>
    )
  }
  const several = schema['type'] === 'array' && isObject(schema['items']) ? choicesIn(schema['items']) : undefined
  if (several) {
    const chosen = Array.isArray(value) ? value : []
    const toggle = (choice: unknown) =>
      change(chosen.includes(choice) ? chosen.filter(other => other !== choice) : [...chosen, choice])
    return (
      <fieldset>
        <legend className="field">{label}</legend>
        {note}
        {several.map(({ value: choice, label }) => (
          <Check key={label} label={label} isChecked={chosen.includes(choice)} change={() => toggle(choice)} />
        ))}
      </fieldset>
    )
  }
  if (schema['type'] === 'boolean')
    return (
      <div>
        <Check label={label} isChecked={value === true} change={change} />
        {note}
      </div>
    )
  return (
    <label>
      <span>{label}</span>
      <Input name={name} schema={schema} isRequired={isRequired} value={value ?? undefined} change={change} />
      {note}
    </label>
  )
}

function Check({
  label,
  isChecked,
  change
}: {
  readonly label: ReactNode
  readonly isChecked: boolean
  readonly change: (isChecked: boolean) => void
}) {
  return (
    <label className="check">
      <input type="checkbox" checked={isChecked} onChange={event => change(event.target.checked)} />
      <span>{label}</span>
    </label>
  )
}

function Input({ schema, isRequired, value, change }: FieldProps) {
  const choices = choicesIn(schema)
  if (choices) {
    const chosen = choices.findIndex(choice => choice.value === value)
    return (
      <select
        required={isRequired}
        value={chosen < 0 ? '' : chosen}
        onChange={event => change(choices[event.target.value === '' ? -1 : Number(event.target.value)]?.value)}
      >
        <option value="" disabled={isRequired} />
        {choices.map(({ label }, i) => (
          <option key={i} value={i}>
            {label}
          </option>
        ))}
      </select>
    )
  }
  const { type, format, items } = schema
  const text = typeof value === 'string' ? value : value === undefined ? '' : JSON.stringify(value)
  if (type === 'number' || type === 'integer') {
    const bounds = {
      min: numberIn(schema, 'minimum'),
      max: numberIn(schema, 'maximum'),
      step: type === 'integer' ? 1 : 'any'
    }
    return (
      <input
        type="number"
        required={isRequired}
        {...bounds}
        value={text}
        onChange={event => change(event.target.value === '' ? undefined : Number(event.target.value))}
      />
    )
  }
  if (type === 'array' && isObject(items) && items['type'] === 'string')
    return (
      <Written
        isRequired={false}
        hint="one per line"
        first={linesOf(value)}
        read={lines}
        change={change}
        empty={isRequired ? [] : undefined}
      />
    )
  if (type !== 'string' && Object.keys(schema).some(name => STRUCTURED.includes(name))) {
    return (
      <Written
        isRequired={isRequired}
        hint="JSON"
        first={value === undefined ? '' : JSON.stringify(value)}
        read={json}
        change={change}
      />
    )
  }
  const kind =
    { 'date-time': 'datetime-local', date: 'date', email: 'email', uri: 'url', time: 'time' }[String(format)] ?? 'text'
  const lengths = { minLength: numberIn(schema, 'minLength'), maxLength: numberIn(schema, 'maxLength') }
  const read = (text: string) =>
    text === '' ? undefined : kind === 'datetime-local' ? new Date(text).toISOString() : text
  // The browser's own control keeps the text of a time: the value is that time in UTC.
  const shown = kind === 'datetime-local' ? {} : { value: text }
  return (
    <input
      type={kind}
      required={isRequired}
      {...lengths}
      {...shown}
      onChange={event => change(read(event.target.value))}
    />
  )
}

/** Members of a schema whose value is more than a text. */
const STRUCTURED = ['type', '$ref', 'anyOf', 'allOf', 'oneOf', 'additionalProperties', 'prefixItems']

interface WrittenProps extends Pick<FieldProps, 'isRequired' | 'change'> {
  readonly hint: string
  readonly first: string
  readonly read: (text: string) => unknown
  /** The value of an empty text. */
  readonly empty?: unknown
}

/** Lists and free objects are written as text. */
function Written({ isRequired, hint, first, read, change, empty }: WrittenProps) {
  const [text, setText] = useState(first)
  const write = (text: string) => {
    setText(text)
    change(text.trim() === '' ? empty : read(text))
  }
  return (
    <textarea
      rows={3}
      required={isRequired}
      placeholder={hint}
      value={text}
      onChange={event => write(event.target.value)}
    />
  )
}

function linesOf(value: unknown): string {
  return Array.isArray(value) ? value.join('\n') : ''
}

function lines(text: string): string[] {
  return text
    .split('\n')
    .map(line => line.trim())
    .filter(line => line !== '')
}

/** A text that is not JSON is sent as it is, and the agent says what it wants. */
function json(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return text
  }
}

/** The values to choose from: an `enum`, or a `oneOf` of constants with titles. */
function choicesIn(schema: Schema): { readonly value: unknown; readonly label: string }[] | undefined {
  const { enum: values, oneOf, anyOf = oneOf } = schema
  if (Array.isArray(values)) return values.map(value => ({ value, label: String(value) }))
  if (!Array.isArray(anyOf) || !anyOf.every(isObject) || !anyOf.every(choice => 'const' in choice)) return undefined
  return anyOf.map(choice => ({ value: choice['const'], label: textIn(choice, 'title') ?? String(choice['const']) }))
}

/** The schema of a value that may be null, without null: an empty field is null. Any other schema stays as it is. */
function withoutNull(schema: Schema): Schema {
  const { anyOf, type, ...rest } = schema
  if (Array.isArray(type))
    return type.length === 2 && type.includes('null') ? { ...schema, type: type.find(name => name !== 'null') } : schema
  if (!Array.isArray(anyOf) || anyOf.length !== 2) return schema
  const others = anyOf.filter(choice => isObject(choice) && choice['type'] !== 'null')
  return others.length === 1 && isObject(others[0]) ? { ...others[0], ...rest } : schema
}

/** The value to start with. Optional members start without one. */
function first(schema: Schema, isRequired: boolean): unknown {
  if (schema['default'] !== undefined) return schema['default']
  if (!isRequired) return undefined
  if (withoutNull(schema) !== schema) return null
  const { properties, required } = schema
  if (!isObject(properties)) return { boolean: false, array: [] }[String(schema['type'])] ?? schema['const']
  return Object.fromEntries(
    Object.entries(properties).map(([name, member]) => [
      name,
      isObject(member) ? first(member, Array.isArray(required) && required.includes(name)) : undefined
    ])
  )
}

function textIn(schema: Schema, name: string): string | undefined {
  const value = schema[name]
  return typeof value === 'string' ? value : undefined
}

function numberIn(schema: Schema, name: string): number | undefined {
  const value = schema[name]
  return typeof value === 'number' ? value : undefined
}
