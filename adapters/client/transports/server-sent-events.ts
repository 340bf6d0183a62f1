import { createParser } from 'eventsource-parser'
import { A2AError } from '../../../machines/protocol/errors.ts'
import { chunksOf } from './body.ts'

/** The maximum length of an event, in characters. */
const LONGEST_EVENT = 16 * 1024 * 1024

/**
 * The data of each event of an SSE response. Comments, events without data or with `{}`, with which some agents show that they are alive,
 * ids, names, unknown fields, and an incomplete last event are ignored. Throws ConnectionLost if the stream is interrupted,
 * InvalidAgentResponse for an event above 16 Mi characters. Leaving the loop ends the request.
 */
export async function* eventsOf(response: Response): AsyncGenerator<string, void, undefined> {
  const events: string[] = []
  let isTooLong = false
  const parser = createParser({
    onEvent: ({ data }) => {
      const said = data.trim()
      if (said !== '' && !/^\{\s*\}$/.test(said)) events.push(data)
    },
    onError: ({ type }) => (isTooLong ||= type === 'max-buffer-size-exceeded'),
    maxBufferSize: LONGEST_EVENT
  })
  const decoder = new TextDecoder()
  for await (const chunk of chunksOf(response)) {
    parser.feed(decoder.decode(chunk, { stream: true }))
    yield* events.splice(0)
    if (isTooLong)
      throw new A2AError(
        'InvalidAgentResponse',
        `The agent at ${response.url} sent an event that is longer than ${LONGEST_EVENT} characters.`
      )
  }
}
