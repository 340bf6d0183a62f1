import type { FieldViolation } from '../errors.ts'

const PLAIN_NAME = /^[A-Za-z_$][\w$-]{0,99}$/

/** Any value that JSON text can express. */
export type JsonValue = null | boolean | number | string | JsonValue[] | { [member: string]: JsonValue }

/** Limits of `checkJson`, and the name of the value in a violation. */
export interface JsonLimits {
  /** First segment of the violation's path; default `params`. */
  readonly root?: string
  /** Nesting depth of containers, the outermost being 1; default 64. */
  readonly depth?: number
  /** Total members of all objects; default 10,000. */
  readonly keys?: number
  /** Total values: members of objects, elements of lists, and the value itself; default 200,000. */
  readonly nodes?: number
  /**
   * UTF-16 units in a string or a name; default 512 Ki. Values of members that carry bytes are exempt: `raw`, and in
   * 0.3 `bytes` and `fileWithBytes`.
   */
  readonly stringLength?: number
}

/** A container on the path to the current value; `seen` counts its checked values. */
interface Frame {
  /** Member names; `undefined` for an array. */
  readonly names: readonly string[] | undefined
  readonly values: readonly unknown[]
  seen: number
}

/**
 * An open container in JSON text. `at` is the offset of its current member's name, or the index of its current element.
 */
interface OpenText {
  readonly isObject: boolean
  at: number
  isNamed: boolean
}

const DEFAULTS: Required<JsonLimits> = {
  root: 'params',
  depth: 64,
  keys: 10_000,
  nodes: 200_000,
  stringLength: 512 * 1024
}
/** Text up to this length is parsed unchecked, which takes a few milliseconds at most. */
const SCANNED_LENGTH = 64 * 1024
/** Extra values and members allowed outside the checked member, such as the method of a JSON-RPC request. */
const AROUND = 1000
const BYTES_NAMES: ReadonlySet<unknown> = new Set(['raw', 'bytes', 'fileWithBytes'])

/** Whether a value is a JSON object: neither null nor an array. */
export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/**
 * Copies a value through JSON text. Throws TypeError for a cycle or a BigInt, SyntaxError for a value that JSON omits,
 * such as `undefined`.
 */
export function toJson(value: unknown): unknown {
  return JSON.parse(JSON.stringify(value))
}

/** Whether a member name is forbidden because assigning to it would set a prototype. Every other name is data. */
export function isForbiddenName(name: string): boolean {
  return name === '__proto__'
}

/**
 * A value with fewer values and levels than these is checked without an object for each container, which saves 0.4 kB
 * of a small request.
 */
const FEW_VALUES = 256
const FEW_LEVELS = 16

/**
 * Checks parsed JSON before it is decoded. Refused are deep nesting, too many values or members, long strings, lone
 * surrogates, numbers that a double cannot hold, and the name `__proto__`.
 *
 * Gives the first violation, or `undefined`. It recurses 16 levels at most and stops at the first violation, so hostile
 * input costs no more than valid input of its size.
 */
export function checkJson(value: unknown, limits: JsonLimits = {}): FieldViolation | undefined {
  const {
    depth = DEFAULTS.depth,
    keys = DEFAULTS.keys,
    nodes = DEFAULTS.nodes,
    stringLength = DEFAULTS.stringLength
  } = limits
  valuesLeft = Math.min(keys, nodes, FEW_VALUES)
  if (isSmallAndValid(value, Math.min(depth, FEW_LEVELS), stringLength)) return undefined
  const allowed = { ...DEFAULTS, ...limits }
  const open: Frame[] = []
  const wrong = firstWrong(value, allowed, open)
  return wrong === undefined ? undefined : { field: pathText(allowed.root, open.map(stepOf)), description: wrong }
}

/**
 * Checks JSON text before it is parsed, for more values, more members or deeper nesting than `checkJson` allows.
 * Parsing 4 MiB of empty containers takes ten times as long as this scan, and blocks every other caller.
 *
 * It stops at the first excess, and counts duplicate members separately. Text of at most 64 Ki characters passes, and
 * so may text that is not JSON. With `member` the limits apply to this member of the outermost object; the text may
 * then nest one level deeper and have 1,000 more values and members.
 */
export function checkJsonText(text: string, limits: JsonLimits = {}, member?: string): FieldViolation | undefined {
  if (text.length <= SCANNED_LENGTH) return undefined
  const allowed = { ...DEFAULTS, ...limits }
  const { depth, keys, nodes } = allowed
  const open: OpenText[] = []
  const wrong = firstExcess(
    text,
    allowed,
    member === undefined ? allowed : { depth: depth + 1, keys: keys + AROUND, nodes: nodes + AROUND },
    open
  )
  if (wrong === undefined) return undefined
  const [first, ...rest] = open.map(({ isObject, at }) => (isObject ? nameAt(text, at) : at))
  const path = first === undefined ? [] : [first, ...rest]
  const field = first !== undefined && first === member ? pathText(member, rest) : pathText(allowed.root, path)
  return { field, description: wrong }
}

type Bounds = Pick<Required<JsonLimits>, 'depth' | 'keys' | 'nodes'>

/**
 * The message of the first limit that the text exceeds, with the figures of `reported`. `open` is then the path to the
 * container.
 */
function firstExcess(
  text: string,
  reported: Bounds,
  { depth, keys, nodes }: Bounds,
  open: OpenText[]
): string | undefined {
  let values = 1
  let members = 0
  let top: OpenText | undefined
  for (let at = 0; at < text.length; at += 1) {
    switch (text.charAt(at)) {
      case '"':
        if (top?.isObject && !top.isNamed) top.at = at
        at = endOfString(text, at)
        break
      case ':':
        members += 1
        if (members > keys) return leave(open, tooMany(reported.keys, 'members'))
        if (top) top.isNamed = true
        break
      case ',':
        values += 1
        if (values > nodes) return leave(open, tooMany(reported.nodes, 'values'))
        if (top?.isObject) top.isNamed = false
        else if (top) top.at += 1
        break
      case '[':
      case '{':
        values += 1
        if (open.length === depth) return tooDeep(reported.depth)
        top = text[at] === '{' ? { isObject: true, at, isNamed: false } : { isObject: false, at: 0, isNamed: false }
        open.push(top)
        break
      case ']':
      case '}':
        // The opening bracket counted one value, which an empty container does not have.
        if (isEmptyAt(text, at)) values -= 1
        if (values > nodes) return leave(open, tooMany(reported.nodes, 'values'))
        open.pop()
        top = open.at(-1)
    }
  }
  return undefined
}

/** Whether the container that ends here holds only white space. */
function isEmptyAt(text: string, at: number): boolean {
  let before = at - 1
  while (text.charCodeAt(before) <= 0x20) before -= 1
  return text[before] === '[' || text[before] === '{'
}

/** The name that begins at a quote; empty if the text is not JSON. */
function nameAt(text: string, at: number): string {
  try {
    return String(JSON.parse(text.slice(at, endOfString(text, at) + 1)))
  } catch {
    return ''
  }
}

/** Offset of the closing quote of the string that begins at `from`; the length of the text if there is none. */
function endOfString(text: string, from: number): number {
  const end = text.indexOf('"', from + 1)
  if (end < 0) return text.length
  if (text[end - 1] !== '\\') return end
  let at = from + 1
  while (at < text.length && text[at] !== '"') at += text[at] === '\\' ? 2 : 1
  return at
}

/** The values that {@link isSmallAndValid} may still look at. */
let valuesLeft = 0

/** Whether a value has no violation, if it is small. With false it may have one. */
function isSmallAndValid(value: unknown, levels: number, stringLength: number): boolean {
  valuesLeft -= 1
  if (valuesLeft < 0) return false
  if (typeof value === 'string') return value.length <= stringLength && value.isWellFormed()
  if (!isContainer(value)) return typeof value !== 'number' || Math.abs(value) !== Infinity
  if (levels === 0) return false
  if (Array.isArray(value)) {
    for (let i = 0; i < value.length; i += 1) if (!isSmallAndValid(value[i], levels - 1, stringLength)) return false
    return true
  }
  // Inherited members are none of JSON: one more is looked at.
  for (const name in value) {
    const isValid = !isForbiddenName(name) && name.length <= stringLength && name.isWellFormed()
    if (!isValid || !isSmallAndValid((value as Record<string, unknown>)[name], levels - 1, stringLength)) return false
  }
  return true
}

/** The first violation's description; `open` is then the path to its value. */
function firstWrong(value: unknown, allowed: Required<JsonLimits>, open: Frame[]): string | undefined {
  const wrong = wrongValue(value, undefined, allowed)
  if (wrong !== undefined) return wrong
  if (isContainer(value)) open.push(frameOf(value))
  let keys = 0
  let nodes = 1
  for (let frame = open.at(-1); frame !== undefined; frame = open.at(-1)) {
    if (frame.seen === 0) {
      if (open.length > allowed.depth) return leave(open, tooDeep(allowed.depth))
      keys += frame.names?.length ?? 0
      if (keys > allowed.keys) return leave(open, tooMany(allowed.keys, 'members'))
      nodes += frame.values.length
      if (nodes > allowed.nodes) return leave(open, tooMany(allowed.nodes, 'values'))
    }
    const wrong = nextWrong(frame, allowed, open)
    if (wrong !== undefined) return wrong
  }
  return undefined
}

/** Checks one container up to its next nested container, which it opens, or to its end, where it closes it. */
function nextWrong(frame: Frame, allowed: Required<JsonLimits>, open: Frame[]): string | undefined {
  const { names, values } = frame
  while (frame.seen < values.length) {
    const name = names?.[frame.seen]
    const value = values[frame.seen]
    frame.seen += 1
    const wrong = (name === undefined ? undefined : wrongName(name, allowed)) ?? wrongValue(value, name, allowed)
    if (wrong !== undefined) return wrong
    if (isContainer(value)) {
      open.push(frameOf(value))
      return undefined
    }
  }
  open.pop()
  return undefined
}

function wrongName(name: string, { stringLength }: Required<JsonLimits>): string | undefined {
  if (isForbiddenName(name)) return 'must not have this name'
  if (name.length > stringLength) return tooLong(stringLength)
  return name.isWellFormed() ? undefined : 'must have a name without lone surrogates'
}

/** The violation of a string or number, if any; `name` is its member name. */
function wrongValue(
  value: unknown,
  name: string | undefined,
  { stringLength }: Required<JsonLimits>
): string | undefined {
  if (typeof value === 'number')
    return Math.abs(value) === Infinity ? 'must be a number that a double can hold' : undefined
  if (typeof value !== 'string') return undefined
  if (value.length > stringLength && !BYTES_NAMES.has(name)) return tooLong(stringLength)
  return value.isWellFormed() ? undefined : 'must be text without lone surrogates'
}

function isContainer(value: unknown): value is object {
  return typeof value === 'object' && value !== null
}

function frameOf(container: object): Frame {
  if (Array.isArray(container)) return { names: undefined, values: container, seen: 0 }
  return { names: Object.keys(container), values: Object.values(container), seen: 0 }
}

function stepOf({ names, seen }: Frame): string | number {
  return names?.[seen - 1] ?? seen - 1
}

/** Makes the violation's path end at the current container instead of at a member of it. */
function leave(open: unknown[], wrong: string): string {
  open.pop()
  return wrong
}

function tooDeep(depth: number): string {
  return `must not be nested more than ${depth} deep`
}

function tooMany(most: number, what: 'members' | 'values'): string {
  return `must not bring the total to more than ${most} ${what}`
}

function tooLong(stringLength: number): string {
  return `must not be longer than ${stringLength} characters`
}

/**
 * Formats the path of a value, as in `params.message.parts[0].text`. Names that are not identifiers are quoted, as in
 * `metadata["urn:example"]`. Text over 200 characters is truncated with `…`. An empty root is omitted.
 */
export function pathText(root: string, path: readonly PropertyKey[]): string {
  let text = root
  for (const step of path) {
    if (text.length > LONGEST) break
    text += segment(step, text === '')
  }
  return text.length > LONGEST ? `${text.slice(0, LONGEST)}…` : text
}

const LONGEST = 200

function segment(step: PropertyKey, first: boolean): string {
  if (typeof step === 'number') return `[${step}]`
  const name = String(step)
  if (!PLAIN_NAME.test(name)) return `[${JSON.stringify(name.slice(0, LONGEST))}]`
  return first ? name : `.${name}`
}
