import { isObject, type JsonValue } from '../../../../machines/protocol/codec/json.ts'
import type { Draft, Field } from './schema-fields.ts'

/** The result of a form: a value, nothing, or an error. */
export type FormValue = { readonly value: JsonValue } | { readonly nothing: true } | { readonly wrong: string }

const NOTHING = { nothing: true } as const

/** The value of a field's input. `name` is the field's name in errors. */
export function formValue(field: Field, draft: Draft, name: string): FormValue {
  switch (field.kind) {
    case 'const':
      return { value: field.value }
    case 'boolean':
      return { value: draft === true }
    case 'choice': {
      const option = draft === '' ? undefined : field.options[Number(draft)]
      return option === undefined ? NOTHING : { value: option }
    }
    case 'number':
      return numberValue(textOf(draft), field.isWhole, name)
    case 'text':
      return textOf(draft) === '' ? NOTHING : { value: written(field.input, textOf(draft)) }
    case 'list':
      return listValue(field.item, Array.isArray(draft) ? draft : [], name)
    case 'object':
      return objectValue(field, isObject(draft) ? draft : {}, name)
    case 'json':
    default:
      return jsonValue(textOf(draft), name)
  }
}

/** The input of a member, whose name the agent has chosen; `undefined` before there is one. */
export function draftIn(drafts: Readonly<Record<string, Draft>>, name: string): Draft | undefined {
  return Object.hasOwn(drafts, name) ? drafts[name] : undefined
}

function textOf(draft: Draft): string {
  return typeof draft === 'string' ? draft : ''
}

function numberValue(text: string, isWhole: boolean, name: string): FormValue {
  if (text.trim() === '') return NOTHING
  const value = Number(text)
  if (!Number.isFinite(value) || (isWhole && !Number.isInteger(value)))
    return { wrong: `${name} has to be a ${isWhole ? 'whole ' : ''}number` }
  return { value }
}

/** Dates and times as in RFC 3339: browsers omit seconds and time zone. */
function written(input: string, text: string): string {
  if (input === 'datetime-local') return new Date(text).toISOString()
  return input === 'time' && text.length === 5 ? `${text}:00` : text
}

function listValue(item: Field, drafts: readonly Draft[], name: string): FormValue {
  const values: JsonValue[] = []
  for (const [i, draft] of drafts.entries()) {
    const one = formValue(item, draft, `${name} ${i + 1}`)
    if ('wrong' in one) return one
    if ('value' in one) values.push(one.value)
  }
  return { value: values }
}

function objectValue(
  { members }: Extract<Field, { kind: 'object' }>,
  drafts: Readonly<Record<string, Draft>>,
  name: string
): FormValue {
  const value: Record<string, JsonValue> = {}
  for (const { name: member, title, field, isRequired } of members) {
    const one = formValue(field, draftIn(drafts, member) ?? '', title)
    if ('wrong' in one) return one
    if ('value' in one) value[member] = one.value
    else if (isRequired) return { wrong: `${title} is missing${name === '' ? '' : ` in ${name}`}` }
  }
  return { value }
}

function jsonValue(text: string, name: string): FormValue {
  if (text.trim() === '') return NOTHING
  try {
    return { value: JSON.parse(text) as JsonValue }
  } catch {
    return { wrong: `${name} has to be JSON, such as {"colour": "red"}` }
  }
}
