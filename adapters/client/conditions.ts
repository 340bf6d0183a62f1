import { decode, int64 } from '../../machines/protocol/codec/decode.ts'
import { A2AError, invalidParams } from '../../machines/protocol/errors.ts'
import type { OperationMethod } from '../../machines/protocol/operations.ts'
import type { Calls } from './calls.ts'
import { type ParameterOptions, type RequestFrame, serviceParametersOf } from './requests.ts'

/** The conditions that 1.1 has as members of requests. */
export interface ConditionalParams {
  readonly currentGeneration?: string
  readonly configuration?: { readonly ifGenerationMatch?: string }
}

/** A condition in a request of a method: where its member is. */
interface Member {
  readonly name: 'currentGeneration' | 'ifGenerationMatch'
  readonly field: string
  readonly read: (params: ConditionalParams) => string | undefined
  readonly write: (params: ConditionalParams, value: string | undefined) => object
}

const AWAITED: Member = {
  name: 'currentGeneration',
  field: 'currentGeneration',
  read: ({ currentGeneration }) => currentGeneration,
  write: (params, currentGeneration) => ({ ...params, currentGeneration })
}

const REQUIRED: Member = {
  name: 'ifGenerationMatch',
  field: 'configuration.ifGenerationMatch',
  read: ({ configuration }) => configuration?.ifGenerationMatch,
  write: (params, ifGenerationMatch) => ({
    ...params,
    configuration: { ...params.configuration, ifGenerationMatch }
  })
}

const MEMBERS: ReadonlyMap<string, Member> = new Map([
  ['GetTask', AWAITED],
  ['SendMessage', REQUIRED],
  ['SendStreamingMessage', REQUIRED]
])

/**
 * The frame of a call with conditions. They are members of a request of 1.1, else service parameters of the reliability
 * extension. Throws UnsupportedOperation if the agent would ignore one, and InvalidParams if an option differs from the
 * member of the request.
 */
export async function conditionalFrame(
  { method, params }: { readonly method: OperationMethod; readonly params: object },
  options: ParameterOptions,
  calls: Calls
): Promise<RequestFrame> {
  const member = MEMBERS.get(method)
  const given = member?.read(params)
  if (!member) return extensionFrame({ method, params }, options, calls)
  const { [member.name]: wanted = given, ...others } = options
  const option = wanted === undefined ? undefined : decode(int64, wanted, member.field)
  if (given !== undefined && option !== given)
    throw invalidParams({ field: member.field, description: 'must equal the option of the call, or be the only one' })
  const asMember = option !== undefined && calls.generations.areMembers
  const stated = asMember || given !== undefined
  return extensionFrame(
    { method, params: stated ? member.write(params, asMember ? option : undefined) : params },
    asMember || option === undefined ? others : { ...others, [member.name]: option },
    calls
  )
}

/** A frame with conditions of the extension, if there are any. */
async function extensionFrame(
  frame: { readonly method: OperationMethod; readonly params: object },
  options: ParameterOptions,
  calls: Calls
): Promise<RequestFrame> {
  const parameters = serviceParametersOf(options)
  const { ifGenerationMatch, currentGeneration } = options
  if ((ifGenerationMatch ?? currentGeneration) !== undefined && !(await calls.isReliable())) {
    const name = ifGenerationMatch === undefined ? 'currentGeneration' : 'ifGenerationMatch'
    throw new A2AError(
      'UnsupportedOperation',
      `The agent at ${calls.url} has no generations, so it would ignore ${name}. Nothing was sent. Call it without ${name}.`
    )
  }
  return { ...frame, parameters }
}
