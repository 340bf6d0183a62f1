import { createHash } from 'node:crypto'
import type { AgentCard, AgentSkill } from '../../machines/protocol/card.ts'
import { isObject, type JsonValue } from '../../machines/protocol/codec/json.ts'
import type { FieldViolation } from '../../machines/protocol/errors.ts'
import type { Message, Part } from '../../machines/protocol/objects.ts'
import { INPUT_EXTENSION, NEGOTIATION_EXTENSION } from '../../machines/protocol/uris.ts'

type Schema = Readonly<Record<string, unknown>>

/** A tool as clients list it. */
export interface ListedTool {
  readonly name: string
  readonly title?: string
  readonly description?: string
  readonly inputSchema: { readonly type: 'object' } & Schema
  readonly annotations?: Schema
}

/** A tool of an agent: one of its skills, or the agent itself. */
export interface SkillTool {
  readonly listed: ListedTool
  /** The id of the skill, or the name of the tool of an agent without skills. */
  readonly skill: string
  /** How the arguments become a message. */
  readonly form: 'text' | 'properties' | 'value'
  /** Whether it takes moves of a negotiation, in the argument `negotiation`. */
  readonly negotiates: boolean
}

/** Hints for hosts about a tool, from the author. Hosts do not trust them. Default: the cautious ones. */
export interface ToolAnnotations {
  readonly title?: string
  readonly readOnlyHint?: boolean
  readonly destructiveHint?: boolean
  readonly idempotentHint?: boolean
  readonly openWorldHint?: boolean
}

/** The metadata key of a message from an MCP host: `{ tool }`, the id of the skill that was called. */
export const MCP_METADATA = 'urn:taskchart:mcp:1'

/** The tool by which hosts go on with a task. */
export const FOLLOW_UP = 'task_followup'

/** The longest name that all hosts accept. */
const LONGEST_NAME = 64
/** The longest description that hosts show. */
const LONGEST_DESCRIPTION = 2000

const WORKING_NOTE = 'It may ask questions, and may take long.'

/** Arguments of every tool, beside those of the agent. */
const OWN: Schema = {
  contextId: { type: 'string', description: 'The contextId of an earlier result, to go on with that.' },
  referenceTaskIds: {
    type: 'array',
    items: { type: 'string' },
    description: 'The taskIds of earlier results that this is about.'
  }
}

/** The argument by which hosts that cannot ask their users answer an offer. */
const MOVE: Schema = {
  negotiation: {
    type: 'object',
    description:
      'Answers an offer of an earlier result, with its contextId: exactly one of these. Ask your user first.',
    properties: {
      accept: { type: 'string', description: 'The offerId to accept.' },
      decline: { type: 'string', description: 'The offerId to decline.' },
      propose: { type: 'object', description: 'Other terms.' }
    }
  }
}

/** The tool by which a host reads, answers, steers and cancels a task. */
export const FOLLOW_UP_TOOL: ListedTool = {
  name: FOLLOW_UP,
  title: 'Go on with a task',
  description:
    'Reads a task that another tool of this server has opened, and waits for it. Give `message` or `data` to answer its question or to tell it more, or `cancel` to end it.',
  inputSchema: {
    type: 'object',
    properties: {
      taskId: { type: 'string', description: 'The taskId of an earlier result.' },
      message: { type: 'string', description: 'An answer to the question of the task, or more about it.' },
      data: { description: 'An answer as JSON, for a question with a JSON Schema.' },
      cancel: { type: 'boolean', description: 'Whether to cancel the task.' }
    },
    required: ['taskId']
  }
}

/** The tools of an agent: one for each skill, or one named after an agent without skills. */
export function skillTools(card: AgentCard, annotations: Annotations = {}): SkillTool[] {
  const { extensions = [] } = card.capabilities
  const schema = extensions.find(({ uri }) => uri === INPUT_EXTENSION)?.params?.['schema']
  const negotiates = extensions.some(({ uri }) => uri === NEGOTIATION_EXTENSION)
  const own = { ...OWN, ...(negotiates && MOVE) }
  const { form, inputSchema } = isObject(schema) ? valueInput(schema, own) : textInput(own)
  const skills: readonly AgentSkill[] =
    card.skills.length > 0 ? card.skills : [{ id: card.name, name: card.name, description: card.description, tags: [] }]
  const taken = new Set([FOLLOW_UP])
  const distinct = [...new Map(skills.map(skill => [skill.id, skill])).values()]
  return distinct.map(skill => {
    const name = toolName(skill.id, taken)
    taken.add(name)
    const hints = annotations[skill.id]
    const listed = {
      name,
      title: skill.name,
      description: describe(skill),
      inputSchema,
      ...(hints && { annotations: { ...hints } })
    }
    return { listed, skill: skill.id, form, negotiates }
  })
}

/** Hints by the ids of skills. */
export type Annotations = Readonly<Record<string, ToolAnnotations>>

/** A name that hosts accept, unique among those that are taken, and the same after a restart. */
function toolName(id: string, taken: ReadonlySet<string>): string {
  const name = id.replace(/[^\w-]/g, '_')
  if (name !== '' && name.length <= LONGEST_NAME && !taken.has(name)) return name
  const digest = createHash('sha256').update(id).digest('hex').slice(0, 8)
  return `${name.slice(0, LONGEST_NAME - digest.length - 1)}_${digest}`
}

function describe({ description, examples = [] }: AgentSkill): string {
  const words = [description, WORKING_NOTE, ...examples.map(example => `Example: ${example}`)]
  const text = words.filter(line => line !== '').join('\n')
  return text.length > LONGEST_DESCRIPTION ? `${text.slice(0, LONGEST_DESCRIPTION)}…` : text
}

type ToolInput = Pick<SkillTool, 'form'> & Pick<ListedTool, 'inputSchema'>

/** The input of an agent without an `input` schema: words, and data. A move needs no other argument. */
function textInput(own: Schema): ToolInput {
  const properties = {
    message: { type: 'string', description: 'What to do, in words.' },
    data: { type: 'object', description: 'Data for the agent, beside the words.' },
    ...own
  }
  return {
    form: 'text',
    inputSchema: { type: 'object', properties, ...(!('negotiation' in own) && { required: ['message'] }) }
  }
}

/** The input of an agent with an `input` schema: its properties, or its value. A move needs no other argument. */
function valueInput(schema: Schema, own: Schema): ToolInput {
  const { properties, required, $schema: _, $defs, ...rest } = schema
  const needed = required !== undefined && { required }
  const shared = isObject($defs) && { $defs }
  const takesMoves = 'negotiation' in own
  const isFlat = rest['type'] === 'object' && isObject(properties) && !COMBINED.some(name => name in rest)
  if (isFlat && !Object.keys(own).some(name => name in properties))
    return {
      form: 'properties',
      inputSchema: {
        ...rest,
        ...(!takesMoves && needed),
        type: 'object',
        properties: { ...properties, ...own },
        ...shared
      }
    }
  const input = { ...(properties !== undefined && { properties }), ...rest, ...needed }
  return {
    form: 'value',
    inputSchema: {
      type: 'object',
      properties: { input, ...own },
      ...(!takesMoves && { required: ['input'] }),
      ...shared
    }
  }
}

/** Keywords that many hosts refuse at the root of a schema. */
const COMBINED = ['oneOf', 'anyOf', 'allOf'] as const

/** Arguments as a message of the client, or what is wrong with them. */
export type ReadArguments =
  | {
      readonly parts: Part[]
      readonly address: Pick<Message, 'contextId' | 'referenceTaskIds'>
      readonly move: unknown
    }
  | { readonly violations: readonly FieldViolation[] }

/** Reads the arguments of a tool. The agent's own schema checks its part of them. */
export function readToolArguments({ form, negotiates }: SkillTool, given: Schema): ReadArguments {
  const { contextId, referenceTaskIds, ...others } = given
  const { negotiation, ...withoutMove } = others
  // The input of an agent that does not negotiate may have a property of this name.
  const [move, rest] = form === 'properties' && !negotiates ? [undefined, others] : [negotiation, withoutMove]
  const violations = [
    ...(contextId === undefined || typeof contextId === 'string'
      ? []
      : [{ field: 'contextId', description: 'must be a string' }]),
    ...(referenceTaskIds === undefined || isTexts(referenceTaskIds)
      ? []
      : [{ field: 'referenceTaskIds', description: 'must be a list of strings' }])
  ]
  const address = {
    ...(typeof contextId === 'string' && { contextId }),
    ...(isTexts(referenceTaskIds) && { referenceTaskIds: [...referenceTaskIds] })
  }
  if (move !== undefined && Object.keys(rest).length === 0) return outcome([])
  if (form === 'properties') return outcome([{ data: rest as JsonValue }])
  if (form === 'value') return outcome([{ data: (rest['input'] ?? null) as JsonValue }])
  const { message, data } = rest
  if (typeof message !== 'string' && (move === undefined || message !== undefined))
    violations.push({ field: 'message', description: 'must be a string: what to do, in words' })
  return outcome([
    ...(typeof message === 'string' ? [{ text: message }] : []),
    ...(data === undefined ? [] : [{ data: data as JsonValue }])
  ])

  function outcome(parts: Part[]): ReadArguments {
    return violations.length > 0 ? { violations } : { parts, address, move }
  }
}

function isTexts(value: unknown): value is readonly string[] {
  return Array.isArray(value) && value.every(each => typeof each === 'string')
}
