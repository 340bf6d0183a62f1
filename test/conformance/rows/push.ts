import { say } from '../../fixtures/runtime-helpers.ts'
import { nowhere, row, type Row } from '../row.ts'

const NOT_OFFERED = 'push notifications are not offered: see 81'

/** §10.5: push notifications, which are not offered. */
export const push: readonly Row[] = [
  row(81, 'M', '3.3.4', 'Without the capability every operation of push notifications is refused: PushNotificationNotSupported', async (t, { client, runtime }) => {
    t.notOk(runtime.agentCard([{ url: 'http://localhost', protocolBinding: 'JSONRPC', protocolVersion: '1.0' }]).capabilities.pushNotifications)
    const { id: taskId } = await client.task('x')
    const [config, place] = [{ url: 'https://example.com/' }, { taskId, id: 'p' }]
    for (const [method, params] of [
      ['CreateTaskPushNotificationConfig', { ...config, taskId }],
      ['GetTaskPushNotificationConfig', place],
      ['ListTaskPushNotificationConfigs', { taskId }],
      ['DeleteTaskPushNotificationConfig', place],
      ['SendMessage', say('x', {}, { taskPushNotificationConfig: config })]
    ] as const) t.equal((await client.refusal(method, params)).reason, 'PUSH_NOTIFICATION_NOT_SUPPORTED', method)
  }),
  nowhere(82, 'M', '3.1.7', 'A configuration is kept, and comes back with its id; TaskNotFound for an unknown task', NOT_OFFERED),
  nowhere(83, 'M', '3.1.7', 'A configuration lasts until the task ends or it is deleted', NOT_OFFERED),
  nowhere(84, 'M', '3.1.8', 'A configuration is read again; a missing or foreign one is an error', NOT_OFFERED),
  nowhere(85, 'M', '3.1.9', 'All configurations of a task are listed', NOT_OFFERED),
  nowhere(86, 'M', '3.1.10', 'A deleted configuration gets nothing more; deleting twice is as deleting once', NOT_OFFERED),
  nowhere(87, 'M', '4.3.3', 'What is pushed is a StreamResponse with one member', NOT_OFFERED),
  nowhere(88, 'M', '4.3.3, 13.2', 'Credentials are sent as configured', NOT_OFFERED),
  nowhere(89, 'M', '4.3.3', 'Each update is tried at least once with each webhook', NOT_OFFERED),
  nowhere(90, 'S', '4.3.3, 13.2', 'It is tried again with growing pauses, each try for 10 to 30 seconds', NOT_OFFERED),
  nowhere(91, 'S', '13.2', 'Private, loopback and link-local addresses are refused', NOT_OFFERED),
  nowhere(92, 'M', '3.5.1', 'Pushing is the same whatever binding it was asked for on', NOT_OFFERED),
  nowhere(93, 'M', '3.2.2, 6.6', 'A configuration that comes with SendMessage is that of its task', NOT_OFFERED),
  nowhere(94, 'S', '13.2', 'Secrets of configurations are kept safe', NOT_OFFERED)
]
