import type { AgentCard, AgentInterface } from '../../../machines/protocol/card.ts'
import { message, optionalList, optionalMap, tryDecode } from '../../../machines/protocol/codec/decode.ts'
import { isObject } from '../../../machines/protocol/codec/json.ts'
import { type ErrorCode, ERRORS } from '../../../machines/protocol/errors.ts'
import { SecurityRequirementSchema, SecuritySchemeSchema } from '../../../machines/protocol/security.ts'
import type { Binding } from '../../client/card/bindings.ts'
import type { WireRefusal, WireParameters } from '../callers/caller.ts'

/** The prerequisites of requirements, with the reason for skipping if one is missing. */
export const NEEDS = {
  answer: 'no message of these was answered with a task or a message',
  task: 'no message of these was answered with a task',
  reply: 'no message of these was answered with a message alone',
  ended: 'no task ended',
  stopped: 'no task ended or asked while SendMessage waited',
  live: 'no task was met before its end: give a --text whose work takes a while',
  question: 'no task asked for input: give a --text that makes one ask',
  auth: 'no task asked for an authorization: give a --text that makes one ask',
  immediate: 'the tasks were too quick to tell: give a --text whose work takes a while',
  history: 'no history had the message that was sent, which A2A allows',
  listed: 'no task was there to be listed',
  times: 'no answer had a timestamp',
  bytes: 'no answer had bytes',
  streaming: 'the card says streaming is not supported',
  push: 'the card says push notifications are not supported',
  webhookAccepted: 'the server did not accept a webhook at webhook.invalid',
  noPush: 'the card says push notifications are supported',
  extended: 'the card says there is no extended card',
  noExtended: 'the card says there is an extended card',
  requiredExtension: 'the card requires no extension',
  extension: 'the card lists no extension',
  modes: 'the card accepts every media type',
  credentials: 'the card requires no credentials',
  one: 'the card offers A2A 0.3 at the same address',
  signature: 'signatures of cards are not checked',
  others: 'the card offers no other binding that was tested',
  json: 'this binding carries no JSON',
  key: 'no --api-key was given',
  rpc: 'this binding has no JSON-RPC envelope',
  rpcOverHttp: 'this binding is not JSON-RPC over HTTP',
  rest: 'this binding is not REST',
  grpc: 'this binding is not gRPC',
  websocket: 'this binding is not a WebSocket',
  caseOfNames: 'HTTP ignores the case of header names',
  open: 'A2A leaves it open',
  client: 'it is about clients',
  inside: 'it is not visible from outside',
  callers: 'it needs two callers with their own credentials',
  webhook: 'it needs a web server that the agent can reach',
  untried: 'it is not tried yet',
  outOfBand: 'it needs an authorization, which is given out of band',
  old: 'only A2A 1.0 is tested'
} as const

export type Need = keyof typeof NEEDS

/**
 * The reason for skipping a requirement whose prerequisites were met: an earlier failure, or the bounds of the test.
 */
export const NOT_REACHED = 'its prerequisites were not reached: see the failures, or the bounds of the test'

/** The content of a card that tests use. Other errors in the card do not stop them. */
export interface TestedCard {
  readonly name: string
  readonly interfaces: readonly AgentInterface[]
  readonly streaming: boolean
  readonly pushNotifications: boolean
  readonly extendedAgentCard: boolean
  readonly extensions: readonly string[]
  readonly requiredExtensions: readonly string[]
  /** The accepted media types of all skills. */
  readonly inputModes: readonly string[]
  readonly examples: readonly string[]
  readonly wantsCredentials: boolean
  readonly security: Pick<AgentCard, 'securitySchemes' | 'securityRequirements'>
}

/** An interface under test. */
export interface TestedInterface {
  readonly binding: Binding
  readonly url: string
  readonly tenant: string | undefined
  /** Whether the URL serves no other version of A2A. */
  readonly isOnly10: boolean
}

const SecuritySchema = message({
  securitySchemes: optionalMap(SecuritySchemeSchema),
  securityRequirements: optionalList(SecurityRequirementSchema)
})

/** Reads a card leniently. */
export function offeredIn(card: unknown): TestedCard {
  const { name, supportedInterfaces, capabilities, defaultInputModes, skills, securityRequirements } =
    objectMembersOf(card)
  const { streaming, pushNotifications, extendedAgentCard, extensions } = objectMembersOf(capabilities)
  const listed = objects(extensions).filter(({ uri }) => typeof uri === 'string') as {
    uri: string
    required?: unknown
  }[]
  return {
    name: typeof name === 'string' ? name : 'the agent',
    interfaces: objects(supportedInterfaces).filter(isInterface),
    streaming: streaming === true,
    pushNotifications: pushNotifications === true,
    extendedAgentCard: extendedAgentCard === true,
    extensions: listed.map(({ uri }) => uri),
    requiredExtensions: listed.filter(({ required }) => required === true).map(({ uri }) => uri),
    inputModes: [...texts(defaultInputModes), ...objects(skills).flatMap(({ inputModes }) => texts(inputModes))],
    examples: objects(skills).flatMap(({ examples }) => texts(examples)),
    wantsCredentials: itemsOf(securityRequirements).length > 0,
    security: tryDecode(SecuritySchema, card, 'card').value ?? {}
  }
}

function isInterface(value: Record<string, unknown>): value is Record<string, unknown> & AgentInterface {
  return ['url', 'protocolBinding', 'protocolVersion'].every(name => typeof value[name] === 'string')
}

function objects(value: unknown): Record<string, unknown>[] {
  return itemsOf(value).filter(isObject)
}

function texts(value: unknown): string[] {
  return itemsOf(value).filter(text => typeof text === 'string')
}

/** An expected error: `TaskNotFound (-32001)`. */
export function expectedErrorText(code: ErrorCode): string {
  return `${code} (${ERRORS[code].code}, HTTP ${ERRORS[code].http})`
}

/** The unusual parameters of a call. */
export function parametersText({ version, extensions, credentials }: WireParameters): string {
  const texts = [
    ...(version === undefined ? [] : [version === '' ? 'without A2A-Version' : `A2A-Version: ${version}`]),
    ...(extensions === undefined ? [] : [`A2A-Extensions: ${extensions.join(', ')}`]),
    ...(credentials === '' ? ['without credentials'] : [])
  ]
  return texts.length === 0 ? '' : ` (${texts.join('; ')})`
}

/** An actual error. */
export function actualErrorText({ native, message, reason, code }: WireRefusal): string {
  return `${native}${code ? ` ${code}` : ''}${typeof reason === 'string' ? ` (${reason})` : ''}: ${message}`
}

/** An actual value as text. */
export function valueText(found: unknown): string {
  return typeof found === 'string' ? found : (JSON.stringify(found) ?? 'nothing')
}

/** The answer to a call as text. */
export function outcomeText(outcome: OperationOutcome): string {
  return 'refusal' in outcome ? actualErrorText(outcome.refusal) : valueText(outcome.result)
}

/** The members of an untrusted value; empty unless it is an object. */
export function objectMembersOf(value: unknown): Record<string, unknown> {
  return isObject(value) ? value : {}
}

/** The items of an untrusted value; empty unless it is an array. */
export function itemsOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : []
}

/** The answer to an operation: a result or an error. */
export type OperationOutcome =
  | { readonly result: unknown; readonly extensions: string }
  | { readonly refusal: WireRefusal }
