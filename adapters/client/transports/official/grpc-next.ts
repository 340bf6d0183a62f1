import type { Client, ServiceDefinition } from '@grpc/grpc-js'
import { isObject } from '../../../../machines/protocol/codec/json.ts'
import { allBytes, dialect10, type Fields, fieldsIn, type GrpcDialect, loadGrpc, type Peers } from './grpc.ts'
import { paramsOf } from './official.ts'

/**
 * The metadata key of what 1.1 adds to an object. It holds that from the bytes of an answer until the official client,
 * which does not know these fields, has decoded the rest.
 */
const ADDED = 'taskchart-added'

/** An object of the official client that 1.1 adds members to. */
interface Holder {
  metadata?: object | undefined
}

interface DecodedTask extends Holder {
  readonly artifacts: readonly Holder[]
}

type DecodedEvent =
  | { readonly $case: 'task'; readonly value: DecodedTask }
  | { readonly $case: 'message' }
  | { readonly $case: 'statusUpdate'; readonly value: Holder }
  | { readonly $case: 'artifactUpdate'; readonly value: Holder & { readonly artifact?: Holder } }

type Serialize = (request: object) => Buffer
type Deserialize<Answer> = (bytes: Buffer) => Answer

/** The fields of whole numbers that 1.1 adds to requests, by their names. */
const CONFIGURATION = { ifGenerationMatch: 5, timelineLength: 6 }
const GET_TASK = { currentGeneration: 4, timelineLength: 5 }
const LIST_TASKS = { timelineLength: 9 }

/** The configuration in a request of SendMessage. */
const CONFIGURATION_FIELD = 3

/**
 * Loads the official client. The returned function connects to an agent over the gRPC of 1.1: that of 1.0 with more
 * fields, which are written after those of the official client, and read beside it.
 */
export function loadGrpcNext() {
  return loadGrpc(async (peers): Promise<GrpcDialect> => {
    const dialect = await dialect10(peers)
    return {
      ...dialect,
      open: async (target, options) => {
        const transport = await dialect.open(target, options)
        const official = Reflect.get(transport, 'grpcClient') as Client
        const { service } = official.constructor as unknown as { readonly service: ServiceDefinition }
        const NextClient = peers.grpc.makeGenericClientConstructor(nextService(service, peers), 'A2AService')
        Reflect.set(transport, 'grpcClient', new NextClient(target, options.grpcChannelCredentials))
        official.close()
        return transport
      },
      result: withAdded
    }
  })
}

function nextService(service: ServiceDefinition, { sdk, wire }: Peers): ServiceDefinition {
  const { BinaryWriter, WireType } = wire
  const read = (bytes: Uint8Array) => fieldsIn(wire, bytes)
  const nested = (field: number, bytes: Uint8Array) =>
    new BinaryWriter().tag(field, WireType.LengthDelimited).bytes(bytes).finish()

  const numbers = (names: Readonly<Record<string, number>>, params: object): Uint8Array => {
    const writer = new BinaryWriter()
    const values = new Map(Object.entries(params as Readonly<Record<string, number | string | undefined>>))
    for (const [name, field] of Object.entries(names)) {
      const value = values.get(name)
      if (value !== undefined) writer.tag(field, WireType.Varint).int64(String(value))
    }
    return writer.finish()
  }
  const writing = (method: string, names: Readonly<Record<string, number>>): Serialize => {
    const serialize = service[method]?.requestSerialize as Serialize
    return request => Buffer.concat([serialize(request), numbers(names, paramsOf(request))])
  }
  const writingSend = (method: string): Serialize => {
    const serialize = service[method]?.requestSerialize as Serialize
    return request => {
      const { configuration } = paramsOf(request) as { readonly configuration?: object }
      const whole = serialize(request)
      const [own] = allBytes(read(whole), CONFIGURATION_FIELD)
      if (!configuration || !own) return whole
      const added = Buffer.concat([own, numbers(CONFIGURATION, configuration)])
      return Buffer.concat([serialize({ ...request, configuration: undefined }), nested(CONFIGURATION_FIELD, added)])
    }
  }

  /** The official client decodes no message or status alone, so they are decoded as parts of a task. */
  const taskJson = (field: number, bytes: Uint8Array): { readonly history?: unknown[]; readonly status?: unknown } => {
    const deserialize = service.getTask?.responseDeserialize as Deserialize<Parameters<typeof sdk.Task.toJSON>[0]>
    return sdk.Task.toJSON(deserialize(Buffer.from(nested(field, bytes)))) as object
  }
  const entryOf = (bytes: Uint8Array): object => {
    const fields = read(bytes)
    const [message] = allBytes(fields, 1)
    const [status] = allBytes(fields, 2)
    return definedMembers({
      message: message && taskJson(5, message).history?.[0],
      status: status && taskJson(3, status).status,
      generation: numberIn(fields, 3)
    })
  }
  const addToArtifact = (artifact: Holder | undefined, bytes: Uint8Array | undefined) => {
    if (!artifact || !bytes) return
    const fields = read(bytes)
    addMembers(artifact, { startGeneration: numberIn(fields, 7), endGeneration: numberIn(fields, 8) })
  }
  const addToTask = <Task extends DecodedTask>(task: Task, bytes: Uint8Array): Task => {
    const fields = read(bytes)
    const timeline = allBytes(fields, 8).map(entryOf)
    addMembers(task, { generation: numberIn(fields, 7), timeline: timeline.length > 0 ? timeline : undefined })
    const artifacts = allBytes(fields, 4)
    for (const [index, artifact] of task.artifacts.entries()) addToArtifact(artifact, artifacts[index])
    return task
  }
  const addToEvent = (payload: DecodedEvent | undefined, bytes: Uint8Array) => {
    const fields = read(bytes)
    const content = (field: number) => allBytes(fields, field).at(-1) as Uint8Array
    if (payload?.$case === 'task') addToTask(payload.value, content(1))
    if (payload?.$case === 'statusUpdate') addMembers(payload.value, { generation: numberIn(read(content(3)), 5) })
    if (payload?.$case === 'artifactUpdate') {
      const update = read(content(4))
      addMembers(payload.value, { generation: numberIn(update, 7) })
      addToArtifact(payload.value.artifact, allBytes(update, 3).at(-1))
    }
  }
  const reading = <Answer>(method: string, note: (answer: Answer, bytes: Uint8Array) => void): Deserialize<Answer> => {
    const deserialize = service[method]?.responseDeserialize as Deserialize<Answer>
    return bytes => {
      const answer = deserialize(bytes)
      note(answer, bytes)
      return answer
    }
  }
  const noteEvent = ({ payload }: { readonly payload?: DecodedEvent }, bytes: Uint8Array) => addToEvent(payload, bytes)
  const notePage = ({ tasks }: { readonly tasks: readonly DecodedTask[] }, bytes: Uint8Array) => {
    for (const [index, one] of allBytes(read(bytes), 1).entries()) addToTask(tasks[index] as DecodedTask, one)
  }
  const changes: Readonly<Record<string, object>> = {
    sendMessage: {
      requestSerialize: writingSend('sendMessage'),
      responseDeserialize: reading('sendMessage', noteEvent)
    },
    sendStreamingMessage: {
      requestSerialize: writingSend('sendStreamingMessage'),
      responseDeserialize: reading('sendStreamingMessage', noteEvent)
    },
    getTask: { requestSerialize: writing('getTask', GET_TASK), responseDeserialize: reading('getTask', addToTask) },
    listTasks: {
      requestSerialize: writing('listTasks', LIST_TASKS),
      responseDeserialize: reading('listTasks', notePage)
    },
    cancelTask: { responseDeserialize: reading('cancelTask', addToTask) },
    subscribeToTask: { responseDeserialize: reading('subscribeToTask', noteEvent) }
  }
  return Object.fromEntries(
    Object.entries(service).map(([name, definition]) => [name, { ...definition, ...changes[name] }])
  )
}

/** A whole number as text; `undefined` if the field is missing. */
function numberIn(fields: Fields, field: number): string | undefined {
  const value = fields.get(field)?.at(-1)
  return typeof value === 'bigint' ? String(value) : undefined
}

function definedMembers(members: object): object {
  return Object.fromEntries(Object.entries(members).filter(([, value]) => value !== undefined))
}

function addMembers(holder: Holder, members: object): void {
  holder.metadata = { ...holder.metadata, [ADDED]: definedMembers(members) }
}

/** An answer or an event in wire JSON, with the added members in their places. */
function withAdded(answer: unknown): unknown {
  const { task, tasks, statusUpdate, artifactUpdate } = answer as Record<string, unknown>
  if (isObject(task)) return { task: taskWithAdded(task) }
  if (Array.isArray(tasks)) return { ...(answer as object), tasks: tasks.map(taskWithAdded) }
  if (isObject(statusUpdate)) return { statusUpdate: withAddedMembers(statusUpdate) }
  if (isObject(artifactUpdate)) {
    const { artifact, ...others } = withAddedMembers(artifactUpdate) as { readonly artifact?: object }
    return { artifactUpdate: { ...others, ...(artifact && { artifact: withAddedMembers(artifact) }) } }
  }
  return taskWithAdded(answer as object)
}

function taskWithAdded(task: object): object {
  const { artifacts, ...others } = withAddedMembers(task) as { readonly artifacts?: readonly object[] }
  return { ...others, ...(artifacts && { artifacts: artifacts.map(withAddedMembers) }) }
}

/** An object with its added members. */
function withAddedMembers(holder: object): object {
  const { metadata = {}, ...others } = holder as { readonly metadata?: Record<string, unknown> }
  const { [ADDED]: added, ...own } = metadata
  return { ...others, ...(added as object), ...(Object.keys(own).length > 0 && { metadata: own }) }
}
