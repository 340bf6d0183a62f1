/** An invalid value: where it is, and what is required there. */
interface Issue {
  readonly code: 'custom'
  readonly path: PropertyKey[]
  readonly message: string
  readonly input?: unknown
}

/** The value that is being parsed, and its issues so far. */
interface Payload {
  value: unknown
  readonly issues: Issue[]
}

/** The text of an issue, or a function of the invalid value. */
type ErrorText = string | ((issue: { readonly input?: unknown }) => string)

interface CheckOptions {
  readonly error: ErrorText
  readonly path?: PropertyKey[]
}

/** A check runs after the value was parsed. `isValid`: nothing was wrong so far. */
type Check = (payload: Payload, isValid: boolean) => void

/** The result of `safeParse`. */
type Parsed =
  | { readonly success: true; readonly data: unknown }
  | { readonly success: false; readonly error: { readonly issues: readonly Issue[] } }

/**
 * The part of zod that the protocol's schemas use. It replaces zod in browsers, where zod would be four fifths of the
 * client. Schemas of both accept the same values and report the same issues; a test compares them.
 */
class SmallSchema {
  readonly parse: (payload: Payload) => void
  readonly checks: readonly Check[]

  constructor(parse: (payload: Payload) => void, checks: readonly Check[] = []) {
    this.parse = parse
    this.checks = checks
  }

  check(...more: readonly Check[]): SmallSchema {
    return new SmallSchema(this.parse, [...this.checks, ...more])
  }

  run(payload: Payload): void {
    this.parse(payload)
    for (const check of this.checks) check(payload, payload.issues.length === 0)
  }

  safeParse(value: unknown): Parsed {
    const payload: Payload = { value, issues: [] }
    this.run(payload)
    const { value: data, issues } = payload
    return issues.length === 0 ? { success: true, data } : { success: false, error: { issues } }
  }
}

function complain({ value: input, issues }: Payload, { error, path = [] }: CheckOptions): void {
  issues.push({ code: 'custom', path, message: typeof error === 'string' ? error : error({ input }), input })
}

function kind(isValid: (value: unknown) => boolean): (options: CheckOptions) => SmallSchema {
  return options =>
    new SmallSchema(payload => {
      if (!isValid(payload.value)) complain(payload, options)
    })
}

export const string = kind(value => typeof value === 'string')
export const boolean = kind(value => typeof value === 'boolean')
export const number = kind(value => Number.isFinite(value))

export function unknown(): SmallSchema {
  return new SmallSchema(() => {})
}

export function custom(isValid: (value: unknown) => boolean, options: CheckOptions): SmallSchema {
  return kind(isValid)(options)
}

function oneOf(names: readonly unknown[], options: CheckOptions): SmallSchema {
  return kind(value => names.includes(value))(options)
}

export { oneOf as enum }

/** A list. Its elements are not parsed: the codec does so itself. */
export function array(_element: SmallSchema, options: CheckOptions): SmallSchema {
  return kind(Array.isArray)(options)
}

/** Checks the length of text and lists. As in zod, it also checks values of a wrong type that have a length. */
export function minLength(least: number, options: CheckOptions): Check {
  return payload => {
    const { value } = payload
    const length = typeof value === 'string' || Array.isArray(value) ? value.length : least
    if (length < least) complain(payload, options)
  }
}

export function refine(holds: (value: never) => boolean, options: CheckOptions): Check {
  return (payload, isValid) => {
    if (isValid && !holds(payload.value as never)) complain(payload, options)
  }
}

export function transform(change: (value: never, context: Payload) => unknown): SmallSchema {
  return new SmallSchema(payload => {
    payload.value = change(payload.value as never, payload)
  })
}

export function pipe(first: SmallSchema, second: SmallSchema): SmallSchema {
  return new SmallSchema(payload => {
    first.run(payload)
    if (payload.issues.length === 0) second.run(payload)
  })
}

/** A member with this schema may be missing. */
class OptionalSchema extends SmallSchema {}

export function optional(schema: SmallSchema): SmallSchema {
  return new OptionalSchema(payload => {
    if (payload.value !== undefined) schema.run(payload)
  })
}

export function object(shape: Readonly<Record<string, SmallSchema>>, options: CheckOptions): SmallSchema {
  return new SmallSchema(payload => {
    const { value: input } = payload
    if (typeof input !== 'object' || input === null || Array.isArray(input)) return complain(payload, options)
    const members = new Map<string, unknown>(Object.entries(input))
    const output: Record<string, unknown> = {}
    for (const [name, schema] of Object.entries(shape)) {
      if (schema instanceof OptionalSchema && !members.has(name)) continue
      const member: Payload = { value: members.get(name), issues: [] }
      schema.run(member)
      for (const issue of member.issues) payload.issues.push({ ...issue, path: [name, ...issue.path] })
      output[name] = member.value
    }
    payload.value = output
  })
}

/** As zod answers where code generation is forbidden: nothing is compiled. */
export function config(): { readonly jitless: true } {
  return { jitless: true }
}

export function compile<T>(schema: T): T {
  return schema
}
