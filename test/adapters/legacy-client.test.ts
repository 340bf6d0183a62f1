import t from 'tap'
import { fromResult03, toCall03 } from '../../adapters/v03/client.ts'
import { toProtoSend } from '../../adapters/v03/proto.ts'

const TASK = { id: 't', contextId: 'c', status: { state: 'completed' } }

await t.test('calls of 1.0 become those of 0.3', async t => {
  const authentication = { scheme: 'Bearer', credentials: 'c' }
  const parts = [{ text: 'x', metadata: { a: 1 } }, { raw: 'AA==', filename: 'n', mediaType: 'text/plain' }, { url: 'https://a/' }, { data: [1], metadata: { b: 2 } }, { data: { c: 3 } }]
  t.strictSame(toCall03('SendMessage', { message: { messageId: 'm', role: 'ROLE_AGENT', parts, contextId: 'c' }, configuration: { returnImmediately: true, historyLength: 2, taskPushNotificationConfig: { id: 'p', url: 'https://b/', token: 't', authentication } }, metadata: { d: 4 } }), {
    method: 'message/send',
    params: {
      message: {
        kind: 'message', role: 'agent', messageId: 'm', contextId: 'c',
        parts: [
          { kind: 'text', text: 'x', metadata: { a: 1 } }, { kind: 'file', file: { bytes: 'AA==', name: 'n', mimeType: 'text/plain' } }, { kind: 'file', file: { uri: 'https://a/' } },
          { kind: 'data', data: { value: [1] }, metadata: { b: 2, data_part_compat: true } }, { kind: 'data', data: { c: 3 } }
        ]
      },
      configuration: { historyLength: 2, blocking: false, pushNotificationConfig: { id: 'p', url: 'https://b/', token: 't', authentication: { schemes: ['Bearer'], credentials: 'c' } } },
      metadata: { d: 4 }
    }
  })
  t.match(toCall03('SendMessage', { message: { messageId: 'm', role: 'ROLE_USER', parts: [] }, configuration: { taskPushNotificationConfig: { url: 'https://b/' } } }), { params: { configuration: { blocking: true, pushNotificationConfig: { url: 'https://b/' } } } })
  t.strictSame(toCall03('GetTask', { id: 't', historyLength: 1, tenant: undefined }), { method: 'tasks/get', params: { id: 't', historyLength: 1 } })
  t.equal(toCall03('ListTasks', {}), undefined)
  const message = { kind: 'message', role: 'user', messageId: 'm', parts: [{ kind: 'text', text: 'x' }] }
  t.strictSame(toProtoSend({ message, configuration: { blocking: true, pushNotificationConfig: { url: 'https://b/' } } }), {
    message: { role: 'ROLE_USER', messageId: 'm', content: [{ text: 'x' }] }, configuration: { blocking: true, pushNotification: { url: 'https://b/' } }
  })
})

await t.test('answers of 0.3 are read also without kinds, and with times without a zone', async t => {
  const parts = [{ text: 'x', metadata: { a: 1 } }, { file: { bytes: 'AA==', name: 'n' }, metadata: { a: 1 } }, { kind: 'data', data: { value: [1] }, metadata: { data_part_compat: true } }, { data: { value: 1 }, metadata: { data_part_compat: true, b: 2 } }, { data: { value: 1 } }, { data: 1, metadata: { c: 3 } }]
  t.strictSame(fromResult03('SendMessage', { messageId: 'm', role: 'agent', parts }), {
    message: {
      messageId: 'm', role: 'ROLE_AGENT',
      parts: [{ text: 'x', metadata: { a: 1 } }, { raw: 'AA==', filename: 'n', metadata: { a: 1 } }, { data: [1] }, { data: 1, metadata: { b: 2 } }, { data: { value: 1 } }, { data: 1, metadata: { c: 3 } }]
    }
  })
  t.match(fromResult03('GetTask', { ...TASK, status: { state: 'working', timestamp: '2025-06-01T12:00:00.5' }, history: null }), { status: { timestamp: '2025-06-01T12:00:00.5Z' } })
  t.match(fromResult03('SendStreamingMessage', { kind: 'artifact-update', artifact: 5 }), { artifactUpdate: { artifact: 5 } })
  t.match(fromResult03('GetTask', { ...TASK, status: { state: 'working', message: 5 } }), { status: { message: 5 } })
})
