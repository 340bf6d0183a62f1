import type { Row } from './row.ts'
import { card } from './rows/card.ts'
import { customBinding } from './rows/custom-binding.ts'
import { envelope } from './rows/envelope.ts'
import { equivalence } from './rows/equivalence.ts'
import { errors } from './rows/errors.ts'
import { legacy } from './rows/legacy.ts'
import { oldest } from './rows/oldest.ts'
import { push } from './rows/push.ts'
import { reading } from './rows/reading.ts'
import { refining } from './rows/refining.ts'
import { security } from './rows/security.ts'
import { sendMessage } from './rows/send-message.ts'
import { serialization } from './rows/serialization.ts'
import { streaming } from './rows/streaming.ts'
import { serving } from './rows/serving.ts'
import { versions } from './rows/versions.ts'

/** All requirements, in the parts of the table. */
export const PARTS: Readonly<Record<string, readonly Row[]>> = {
  'Envelope and serialization': [...serialization, ...envelope],
  SendMessage: sendMessage,
  'Streams and subscriptions': streaming,
  'Get, list and cancel': reading,
  'Push notifications': push,
  Errors: errors,
  'Versions, extensions and tenants': versions,
  'Agent card': card,
  'Equivalence of bindings': equivalence,
  Security: security,
  'The WebSocket binding': customBinding,
  'A2A 0.3': legacy,
  'A2A 0.1': oldest,
  'Follow-ups': refining,
  Serving: serving
}
