import * as z from 'zod'
import { complain, requirementText, type Schema } from './decode.ts'
import type { FieldDefinition } from './fields.ts'
import { isObject } from './json.ts'

type Fields = Readonly<Record<string, FieldDefinition<unknown>>>
type Value<F> = F extends FieldDefinition<infer T> ? T : never
type Flat<T> = { [K in keyof T]: T[K] }

/** The type of a message with these fields. */
export type MessageOf<F extends Fields> = Flat<
  { [K in keyof F as F[K]['optional'] extends false ? K : never]: Value<F[K]> } & {
    [K in keyof F as F[K]['optional'] extends true ? K : never]?: Value<F[K]>
  }
>

/** The type of a oneof: exactly one of the choices, with the common fields. */
export type OneOf<Choices extends Fields, Common extends Fields> = {
  [K in keyof Choices]: Flat<{ [P in K]: Value<Choices[K]> } & MessageOf<Common>>
}[keyof Choices]

interface Entry {
  readonly name: string
  readonly field: FieldDefinition<unknown>
}

/**
 * Describes a proto message by its fields, named in camelCase.
 *
 * Its schema accepts camelCase and snake_case names, but not both for one field. It drops unknown names and absent
 * values, fills in REQUIRED fields that may be empty, and checks each field. Inherited members are ignored.
 */
export function message<F extends Fields>(fields: F): Schema<MessageOf<F>>
export function message(fields: Fields): Schema<unknown> {
  return z.pipe(z.transform(canonicaliser(fields)), objectOf(fields))
}

/** Describes a proto message that is a oneof: exactly one of `choices`, and any of the `common` fields. */
export function oneOf<Choices extends Fields, Common extends Fields>(
  choices: Choices,
  common: Common
): Schema<OneOf<Choices, Common>>
export function oneOf(choices: Fields, common: Fields): Schema<unknown> {
  const canonicalise = canonicaliser({ ...choices, ...common })
  const names = Object.keys(choices)
  const chooseOne = (input: unknown, context: z.core.ParsePayload) => {
    const value = canonicalise(input, context)
    const chosen = isObject(value) ? names.filter(name => Object.hasOwn(value, name)) : []
    if (isObject(value) && chosen.length !== 1)
      complain(context, [], `must have exactly one of ${names.join(', ')}${has(chosen)}`)
    return value
  }
  return z.pipe(z.transform(chooseOne), objectOf({ ...madeOptional(choices), ...common }))
}

function objectOf(fields: Fields): z.ZodType {
  const shape = Object.entries(fields).map(
    ([name, { schema, optional }]) => [name, optional ? z.optional(schema) : schema] as const
  )
  return z.object(Object.fromEntries(shape), { error: requirementText('an object') })
}

function canonicaliser(fields: Fields): (input: unknown, context: z.core.ParsePayload) => unknown {
  const entries = new Map<string, Entry>()
  for (const [name, field] of Object.entries(fields)) {
    entries.set(name, { name, field })
    entries.set(snakeCase(name), { name, field })
  }
  const fillers = Object.entries(fields).flatMap(([name, { fill }]) => (fill === undefined ? [] : [{ name, fill }]))
  return (input, context) => {
    if (!isObject(input)) return input
    const output = known(entries, input, context)
    for (const { name, fill } of fillers) if (!Object.hasOwn(output, name)) output[name] = fill()
    return output
  }
}

function known(
  entries: ReadonlyMap<string, Entry>,
  input: Record<string, unknown>,
  context: z.core.ParsePayload
): Record<string, unknown> {
  const output: Record<string, unknown> = {}
  for (const key of Object.keys(input)) {
    const entry = entries.get(key)
    const value = input[key]
    if (entry === undefined || entry.field.isAbsent(value)) continue
    if (Object.hasOwn(output, entry.name))
      complain(context, [entry.name], `must not also be given as ${snakeCase(entry.name)}`)
    output[entry.name] = value
  }
  return output
}

function madeOptional(fields: Fields): Fields {
  return Object.fromEntries(Object.entries(fields).map(([name, field]) => [name, { ...field, optional: true }]))
}

function has(chosen: readonly string[]): string {
  return chosen.length === 0 ? '' : `, not ${chosen.join(' and ')}`
}

function snakeCase(name: string): string {
  return name.replaceAll(/[A-Z]/g, letter => `_${letter.toLowerCase()}`)
}
