import type * as sdk from '@a2a-js/sdk'
import type { User } from '@a2a-js/sdk/server'
import { A2AService } from '@a2a-js/sdk/server/grpc'
import { BinaryReader, BinaryWriter, WireType } from '@bufbuild/protobuf/wire'
import {
  type ServerDuplexStream,
  type ServiceDefinition,
  status,
  type UntypedServiceImplementation
} from '@grpc/grpc-js'
import type {
  Artifact,
  ListTasksResponse,
  StreamResponse,
  Task,
  TimelineEntry
} from '../../machines/protocol/objects.ts'
import { NEXT_VERSION, nativeVersionIn } from '../../machines/protocol/versions.ts'
import type { ServedRuntime } from '../../runtime/runtime-options.ts'
import { type Additions, sdkTask } from '../a2a-sdk/sdk-objects.ts'
import { LIVE_METHOD, liveNotSupported } from '../json-rpc/dispatch.ts'
import { statusOf } from './grpc-errors.ts'

type Service = typeof A2AService

/** The definition of one method of the service, as far as this file changes it. */
interface MethodDefinition<Request, Response> {
  readonly requestDeserialize: (bytes: Buffer) => Request
  readonly responseSerialize: (response: Response) => Buffer<ArrayBuffer>
}

/** A service that reads and writes the fields of 1.1, and what its request handler has to do for it. */
export interface NextVersionService {
  readonly service: Service
  readonly additions: Additions
}

/**
 * The official service with the fields that 1.1 adds to messages of 1.0. The SDK encodes and decodes those of 1.0; what
 * it does not know is read from the bytes of a request, and added to those of a response.
 */
export function nextVersionService(official: Service): NextVersionService {
  const requests = new WeakMap<object, object>()
  const answers = new WeakMap<object, object>()
  const { sendMessage, sendStreamingMessage, getTask, listTasks, cancelTask, subscribeToTask } = official
  const taskBytes = (task: sdk.Task) => getTask.responseSerialize(task)

  const reading = <Request extends object, Response>(
    { requestDeserialize }: MethodDefinition<Request, Response>,
    read: (bytes: Uint8Array) => object
  ) => ({
    requestDeserialize: (bytes: Buffer): Request => {
      const request = requestDeserialize(bytes)
      requests.set(request, read(bytes))
      return request
    }
  })
  /** `notedOf` gives the object whose JSON the request handler has noted. */
  const writing = <Request, Response extends object>(
    { responseSerialize }: MethodDefinition<Request, Response>,
    notedOf: (response: Response) => object,
    write: (bytes: Uint8Array, json: never, taskBytes: TaskBytes) => Uint8Array
  ) => ({
    responseSerialize: (response: Response): Buffer<ArrayBuffer> => {
      const json = answers.get(notedOf(response)) as never
      return Buffer.from(write(responseSerialize(response), json, taskBytes))
    }
  })
  const itself = (response: object) => response

  return {
    additions: {
      request: (message, json) => merged(json as object, requests.get(message)),
      answer: (object, json) => void answers.set(object, json)
    },
    service: {
      ...official,
      sendMessage: {
        ...sendMessage,
        ...reading(sendMessage, readSend),
        ...writing(sendMessage, ({ payload }) => payload?.value as object, writeAnswer)
      },
      sendStreamingMessage: {
        ...sendStreamingMessage,
        ...reading(sendStreamingMessage, readSend),
        ...writing(sendStreamingMessage, itself, writeEvent)
      },
      getTask: {
        ...getTask,
        ...reading(getTask, bytes => readNumbers(bytes, GET_TASK)),
        ...writing(getTask, itself, writeTask)
      },
      listTasks: {
        ...listTasks,
        ...reading(listTasks, bytes => readNumbers(bytes, LIST_TASKS)),
        ...writing(listTasks, itself, writePage)
      },
      cancelTask: { ...cancelTask, ...writing(cancelTask, itself, writeTask) },
      subscribeToTask: { ...subscribeToTask, ...writing(subscribeToTask, itself, writeEvent) }
    }
  }
}

/** The JSON of a request with further members, also of its configuration. */
function merged(json: object, members: { readonly configuration?: object } = {}): object {
  const { configuration } = json as { readonly configuration?: object }
  return {
    ...json,
    ...members,
    ...(configuration && { configuration: { ...configuration, ...members.configuration } })
  }
}

/** Calls `read` for each field of one wire type, which reads its value or returns false. */
function readFields(bytes: Uint8Array, wanted: WireType, read: (field: number, reader: BinaryReader) => boolean): void {
  const reader = new BinaryReader(bytes)
  while (reader.pos < reader.len) {
    const [field, type] = reader.tag()
    if (type !== wanted || !read(field, reader)) reader.skip(type, field)
  }
}

/** The names of fields of whole numbers, which are read as text. An int32 is one of 64 bits on the wire. */
type Names = Readonly<Record<number, string>>

const CONFIGURATION: Names = { 5: 'ifGenerationMatch', 6: 'timelineLength' }
const GET_TASK: Names = { 4: 'currentGeneration', 5: 'timelineLength' }
const LIST_TASKS: Names = { 9: 'timelineLength' }

/** A configuration that comes twice is merged, as protobuf wants. */
function readSend(bytes: Uint8Array): object {
  let configuration = {}
  readFields(bytes, WireType.LengthDelimited, (field, reader) => {
    if (field === 3) configuration = { ...configuration, ...readNumbers(reader.bytes(), CONFIGURATION) }
    return field === 3
  })
  return { configuration }
}

function readNumbers(bytes: Uint8Array, names: Names): object {
  const members: Record<string, string> = {}
  readFields(bytes, WireType.Varint, (field, reader) => {
    const name = names[field]
    if (name !== undefined) members[name] = String(reader.int64())
    return name !== undefined
  })
  return members
}

type TaskBytes = (task: sdk.Task) => Uint8Array

/** Changes the bytes of a nested message; `place` is its index among those of its field. */
type Change = (bytes: Uint8Array, place: number) => Uint8Array

/** A message whose nested messages of some fields are changed, with further fields at its end. */
function changed(
  bytes: Uint8Array,
  changes: Readonly<Record<number, Change>>,
  add: (writer: BinaryWriter) => void = () => {}
): Uint8Array {
  const writer = new BinaryWriter()
  const places: Record<number, number> = {}
  const reader = new BinaryReader(bytes)
  while (reader.pos < reader.len) {
    const start = reader.pos
    const [field, type] = reader.tag()
    const change = changes[field]
    if (change) {
      const place = places[field] ?? 0
      places[field] = place + 1
      writer.tag(field, WireType.LengthDelimited).bytes(change(reader.bytes(), place))
    } else {
      reader.skip(type, field)
      writer.raw(bytes.subarray(start, reader.pos))
    }
  }
  add(writer)
  return writer.finish()
}

function writeTask(bytes: Uint8Array, task: Task, taskBytes: TaskBytes): Uint8Array {
  const { artifacts = [], timeline = [], generation } = task
  return changed(bytes, { 4: (artifact, place) => writeArtifact(artifact, artifacts[place] as Artifact) }, writer => {
    writeNumber(writer, 7, generation)
    for (const entry of timeline) writer.tag(8, WireType.LengthDelimited).bytes(timelineBytes(entry, taskBytes))
  })
}

function writeArtifact(bytes: Uint8Array, { startGeneration, endGeneration }: Artifact): Uint8Array {
  return changed(bytes, {}, writer => {
    writeNumber(writer, 7, startGeneration)
    writeNumber(writer, 8, endGeneration)
  })
}

/** The fields of an entry by those of a task: a status is 3 there, a message of the history 5. */
const ENTRY_FIELDS: Readonly<Record<number, number>> = { 3: 2, 5: 1 }

/** The SDK has no encoder of a message or a status alone, so they are taken out of a task that has nothing else. */
function timelineBytes({ message, status, generation }: TimelineEntry, taskBytes: TaskBytes): Uint8Array {
  const writer = new BinaryWriter()
  const task = taskBytes(sdkTask(message ? { history: [message] } : { status }))
  readFields(task, WireType.LengthDelimited, (field, reader) => {
    const place = ENTRY_FIELDS[field]
    if (place !== undefined) writer.tag(place, WireType.LengthDelimited).bytes(reader.bytes())
    return place !== undefined
  })
  writeNumber(writer, 3, generation)
  return writer.finish()
}

function writeAnswer(bytes: Uint8Array, answer: { readonly task?: Task }, taskBytes: TaskBytes): Uint8Array {
  const { task } = answer
  return task ? changed(bytes, { 1: nested => writeTask(nested, task, taskBytes) }) : bytes
}

function writePage(bytes: Uint8Array, { tasks }: ListTasksResponse, taskBytes: TaskBytes): Uint8Array {
  return changed(bytes, { 1: (nested, place) => writeTask(nested, tasks[place] as Task, taskBytes) })
}

function writeEvent(bytes: Uint8Array, event: StreamResponse, taskBytes: TaskBytes): Uint8Array {
  if ('statusUpdate' in event) {
    const { generation } = event.statusUpdate
    return changed(bytes, { 3: nested => changed(nested, {}, writer => writeNumber(writer, 5, generation)) })
  }
  if ('artifactUpdate' in event) {
    const { artifact, generation } = event.artifactUpdate
    return changed(bytes, {
      4: nested =>
        changed(nested, { 3: bytes => writeArtifact(bytes, artifact) }, writer => writeNumber(writer, 7, generation))
    })
  }
  return 'task' in event ? writeAnswer(bytes, event, taskBytes) : bytes
}

/** Writes an int64. One that is missing is 0, which is not written. */
function writeNumber(writer: BinaryWriter, field: number, value: string | undefined): void {
  if (value !== undefined) writer.tag(field, WireType.Varint).int64(value)
}

type Duplex = ServerDuplexStream<unknown, unknown>

const toBytes: (value: Uint8Array) => Buffer = Buffer.from.bind(Buffer)

/** The proposed method for live input, in the package of the official service. Messages stay bytes: it is refused. */
export const LIVE_SERVICE: ServiceDefinition = {
  [LIVE_METHOD]: {
    path: A2AService.getTask.path.replace(/[^/]*$/, LIVE_METHOD),
    requestStream: true,
    responseStream: true,
    requestSerialize: toBytes,
    requestDeserialize: toBytes,
    responseSerialize: toBytes,
    responseDeserialize: toBytes
  }
}

/** Refuses live input: in 1.1 with UnsupportedOperation, and else as a method that does not exist. */
export function refuseLive(
  identify: (call: Duplex) => Promise<User>,
  { versions, rejected }: ServedRuntime['settings']
): UntypedServiceImplementation {
  const refuse = (call: Duplex) => {
    const [version = ''] = call.metadata.get('a2a-version')
    const refused =
      nativeVersionIn(String(version), versions) === NEXT_VERSION
        ? identify(call).then(
            ({ isAuthenticated, userName }) =>
              statusOf(rejected.answerTo(liveNotSupported(), isAuthenticated ? { principal: userName } : {})),
            statusOf
          )
        : Promise.resolve({
            code: status.UNIMPLEMENTED,
            details: `The server does not implement the method ${call.getPath()}`
          })
    void refused.then(error => call.emit('error', error))
  }
  return { [LIVE_METHOD]: refuse }
}
