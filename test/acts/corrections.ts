import { isObject } from '../../machines/protocol/codec/json.ts'
import type { ActsTest, Members, Step } from './corpus.ts'

/**
 * A test that contradicts A2A 1.0 or the ACTS format. As it is written it has to fail: once it passes, its correction
 * goes.
 */
export interface Correction {
  readonly id: string
  readonly wants: string
  /** Why that is not so. */
  readonly why: string
  /** What the test says instead: it has to pass then. Without it nothing is left to test. */
  readonly instead?: (steps: readonly Step[]) => readonly Step[]
}

const WITHOUT_PUSH = { expect_error: { error_type: 'PushNotificationNotSupportedError' } }

/** Every test that fails as it is written, in the order of the corpus. */
export const CORRECTIONS: readonly Correction[] = [
  {
    id: 'CARD-DISC-002',
    wants: 'the binding of every interface is JSONRPC, GRPC or REST',
    why: '§5.8: it is HTTP+JSON, and other bindings have a URI',
    instead: steps =>
      changed(steps, 'step-1', {
        expect: {
          body: {
            supportedInterfaces: {
              count_gte: 1,
              items: {
                url: { type: 'string' },
                protocolBinding: { matches: '^(?:JSONRPC|GRPC|HTTP\\+JSON|(?:https?|urn):.*)$' },
                protocolVersion: { type: 'string' }
              }
            }
          }
        }
      })
  },
  {
    id: 'CORE-SEND-004',
    wants: 'a media type in metadata.contentType is refused with ContentTypeNotSupported',
    why: '§4.1.6: the media type of a part is its mediaType; metadata is free',
    instead: steps =>
      changed(steps, 'send', {
        params: {
          message: {
            messageId: '{{$uuid}}',
            role: 'ROLE_USER',
            parts: [{ data: { value: 'unsupported' }, mediaType: 'application/x-unsupported-type-12345' }]
          }
        }
      })
  },
  {
    id: 'CORE-HIST-005',
    wants: "the third message of the history is the client's third",
    why: "§4.1.1: the history has the agent's questions too, between the client's messages",
    instead: steps =>
      changed(steps, 'get', {
        assertions: [
          search('get', 'history[0].parts[*]', { text: { contains: 'tck-multi-turn chronological first' } }),
          search('get', 'history[2].parts[*]', { text: { contains: 'tck-multi-turn chronological second' } }),
          search('get', 'history[4].parts[*]', { text: { contains: 'done' } })
        ]
      })
  },
  {
    id: 'CORE-CTX-001',
    wants: "a client's own contextId is refused",
    why: '§3.4.1: an agent may accept it, and taskchart does'
  },
  {
    id: 'CORE-CAP-001',
    wants: 'without the capability a webhook is refused with UnsupportedOperation',
    why: '§3.3.2: the error is PushNotificationNotSupported',
    instead: steps => changed(steps, 'set-config', WITHOUT_PUSH)
  },
  {
    id: 'CORE-ERR-007',
    wants: 'the data of an error is an object',
    why: '§9.5: it is a list of objects',
    instead: steps =>
      changed(steps, 'get-missing-structured', {
        expect_error: { error_type: 'TaskNotFoundError', data: { count_gte: 1, items: { type: 'object' } } }
      })
  },
  {
    id: 'SEC-AUTH-006',
    wants: 'the answer to a request for the public card without credentials is an error, even if its status is 200',
    why: '§8.1: the card is public',
    instead: steps =>
      changed(steps, 'get-agent-card-without-auth', { expect: { status: 200, body: { name: { exists: true } } } })
  },
  {
    id: 'VER-NEG-002',
    wants: 'a request of 1.0 without A2A-Version is served',
    why: '§3.6.2: no version means 0.3, which has no such method',
    instead: steps =>
      changed(steps, 'send-without-version', {
        expect: { status: 200, body: { error: { code: -32009 } } }
      })
  },
  {
    id: 'DM-FMT-003',
    wants: "the agent's message in reply has no contextId",
    why: '§4.1.4: messages of the agent have to have one',
    instead: steps =>
      changed(steps, 'send', {
        expect: { body: { message: { role: 'ROLE_AGENT', taskId: { absent: true }, contextId: { matches: '.' } } } }
      })
  },
  {
    id: 'DM-ART-003',
    wants: 'a file is a member `file` of its part',
    why: '§4.1.6: a part has raw, filename and mediaType',
    instead: steps =>
      changed(steps, 'send', {
        assertions: [
          search('send', 'task.artifacts[*].parts[*]', {
            raw: { type: 'string' },
            filename: { type: 'string' },
            mediaType: { type: 'string' }
          })
        ]
      })
  },
  {
    id: 'DM-ART-004',
    wants: 'the address of a file is a member `fileUrl` of its part',
    why: '§4.1.6: a part has url and filename',
    instead: steps =>
      changed(steps, 'send', {
        assertions: [
          search('send', 'task.artifacts[*].parts[*]', { url: { type: 'string' }, filename: { type: 'string' } })
        ]
      })
  },
  {
    id: 'PUSH-CFG-004',
    wants: 'without the capability a webhook is refused with UnsupportedOperation',
    why: '§3.3.2: the error is PushNotificationNotSupported',
    instead: steps => changed(steps, 'set-config', WITHOUT_PUSH)
  },
  {
    id: 'REST-PD-001',
    wants: 'errors over REST are problem details (RFC 9457)',
    why: '§11.6: they are a google.rpc.Status under `error`',
    instead: steps =>
      changed(steps, 'get-missing-problem', {
        expect: {
          status: 404,
          body: { error: { code: 404, status: 'NOT_FOUND', message: { type: 'string' }, details: { count_gte: 1 } } }
        }
      })
  }
]

/** The steps with other members in one of them. */
function changed(steps: readonly Step[], id: string, members: Partial<Step>): readonly Step[] {
  return steps.map(step => (step.id === id ? { ...step, ...members } : step))
}

/** A search in the answer to a step. */
function search(id: string, path: string, match: unknown) {
  return { source: `{{${id}.response}}`, any: { path, match } }
}

/** What the corpus writes in another way than its format or A2A 1.0, in every test. */
export interface Repair {
  readonly says: string
  readonly mend: (step: Step) => Step
}

/** The repairs, in their order. Each is needed by some test. */
export const REPAIRS: readonly Repair[] = [
  {
    says: 'the operations of webhooks are create_push_config and its siblings in the format',
    mend: withOperation(operation =>
      operation?.replace('set_push_notification', 'create_push').replace('push_notification', 'push')
    )
  },
  {
    says: 'the members of pushNotificationConfig stand in the request itself in 1.0',
    mend: withParams(({ pushNotificationConfig, ...params }) => ({ ...params, ...(pushNotificationConfig as object) }))
  },
  {
    says: 'taskId and contextId of a message stand in the message in 1.0',
    mend: withParams(({ message, ...params }) => {
      if (!isObject(message)) return params
      const { taskId, contextId, ...others } = params
      return {
        ...others,
        message: { ...(taskId !== undefined && { taskId }), ...(contextId !== undefined && { contextId }), ...message }
      }
    })
  },
  {
    says: '1.0 requires messageId',
    mend: withParams(({ message, ...params }) => ({
      ...params,
      ...(isObject(message) && { message: { messageId: '{{$uuid}}', ...message } })
    }))
  },
  {
    says: 'the name of an error is its error_type in the format, not its code',
    mend: ({ expect_error: expected, ...step }) => {
      if (!expected) return step
      const { code, ...others } = expected
      return { ...step, expect_error: { ...(code !== undefined && { error_type: code }), ...others } }
    }
  },
  {
    says: 'an operation that has to be refused has expect_error in the format, not an error in expect',
    mend: ({ expect, ...step }) => {
      if (expect && 'error' in expect) return { ...step, expect_error: {} }
      return expect ? { ...step, expect } : step
    }
  },
  {
    says: 'what an answer has to be stands in the body of expect in the format',
    mend: ({ expect, ...step }) => {
      if (!expect) return step
      const { status, body, ...others } = expect
      return {
        ...step,
        expect: {
          ...(status !== undefined && { status }),
          body: body ?? others
        }
      }
    }
  },
  {
    says: 'an operation has no status of its own in all bindings: only raw requests do',
    mend: ({ expect, ...step }) => {
      if (!expect) return step
      return { ...step, expect: step.raw ? expect : { body: expect.body } }
    }
  }
]

function withOperation(change: (operation: string | undefined) => string | undefined): Repair['mend'] {
  return step => {
    const operation = change(step.operation)
    return operation === undefined ? step : { ...step, operation }
  }
}

/** Changes the parameters of an operation, and those in a raw request by JSON-RPC. */
function withParams(change: (params: Members) => Members): Repair['mend'] {
  return step => {
    const { params, raw } = step
    const body = raw?.body
    return {
      ...step,
      ...(params && { params: change(params) }),
      ...(raw &&
        isObject(body) &&
        isObject(body.params) && { raw: { ...raw, body: { ...body, params: change(body.params) } } })
    }
  }
}

/** A test in the words of its format and of A2A 1.0. */
export function repaired(test: ActsTest): ActsTest {
  return { ...test, steps: REPAIRS.reduce((steps, { mend }) => steps.map(mend), test.steps) }
}

/** A test as its correction has it; undefined without anything left to test. */
export function corrected(test: ActsTest, { instead }: Correction): ActsTest | undefined {
  return instead && { ...test, steps: instead(test.steps) }
}
