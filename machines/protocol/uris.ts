/** The protocol binding of the WebSocket interface: the `protocolBinding` of its entry in an Agent Card (§12). */
export const WEBSOCKET_BINDING = 'urn:taskchart:binding:websocket:1'

/** The extension that adds generations, exact resume, de-duplication and conditional writes (§4.6). */
export const RELIABILITY_EXTENSION = 'urn:taskchart:extension:reliability:1'

/** The extension under which negotiated terms travel, as a data part and in a task's metadata (§4.6). */
export const NEGOTIATION_EXTENSION = 'urn:taskchart:extension:negotiation:1'

/** The extension of a card that says what the message that opens a task has to hold: its `params` are `{ schema }`, a JSON Schema (§4.6). */
export const INPUT_EXTENSION = 'urn:taskchart:extension:input:1'

/** The key in the metadata of a question's message under which the JSON Schema of its answer stands (§4.1.4). */
export const ANSWER_SCHEMA = 'urn:taskchart:answer-schema:1'

/** The key in the metadata of a task of A2A 0.1 under which stands what that version has no member for. */
export const TASK_OF_01 = 'urn:taskchart:task-of-0.1'

/** Where an agent's card is found on its host (§8.2). */
export const AGENT_CARD_PATH = '/.well-known/agent-card.json'

/** The WebSocket subprotocol of our binding. */
export const WEBSOCKET_SUBPROTOCOL = 'a2a.v1'

/** The member of a frame that carries service parameters where there are no headers (§12.3). */
export const SERVICE_PARAMETERS = 'a2a-service-parameters'
