/** The `protocolBinding` of the WebSocket interface in an Agent Card (§12). */
export const WEBSOCKET_BINDING = 'urn:taskchart:binding:websocket:1'

/** The extension that adds generations, exact resume, deduplication and conditional writes (§4.6). */
export const RELIABILITY_EXTENSION = 'urn:taskchart:extension:reliability:1'

/** The extension that names negotiated terms, in data parts and in a task's metadata (§4.6). */
export const NEGOTIATION_EXTENSION = 'urn:taskchart:extension:negotiation:1'

/**
 * The extension of a card that describes the message that opens a task: its `params` are `{ schema }`, a JSON Schema
 * (§4.6).
 */
export const INPUT_EXTENSION = 'urn:taskchart:extension:input:1'

/** The metadata key of a question's message that holds the JSON Schema of its answer (§4.1.4). */
export const ANSWER_SCHEMA = 'urn:taskchart:answer-schema:1'

/** The metadata key of a client's message that holds the `messageId` of the question that it answers (§4.1.4). */
export const QUESTION = 'urn:taskchart:question:1'

/** The path of an agent's card on its host (§8.2). */
export const AGENT_CARD_PATH = '/.well-known/agent-card.json'

/** The WebSocket subprotocol of taskchart's WebSocket binding. */
export const WEBSOCKET_SUBPROTOCOL = 'a2a.v1'

/** The member of a frame that carries service parameters where there are no headers (§12.3). */
export const SERVICE_PARAMETERS = 'a2a-service-parameters'
