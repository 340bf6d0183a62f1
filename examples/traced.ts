/**
 * An agent with traces: `taskchart serve` traces if a tracer provider of OpenTelemetry is registered, as this module
 * does. Spans that the work starts are children of the span of its task. The message `spans` lists those that have
 * ended.
 */
import { context, propagation, trace } from '@opentelemetry/api'
import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks'
import { W3CTraceContextPropagator } from '@opentelemetry/core'
import { BasicTracerProvider, InMemorySpanExporter, SimpleSpanProcessor } from '@opentelemetry/sdk-trace-base'
import { accepted, defineAgent, reply, text, textOf } from 'taskchart'

// In an app: new NodeSDK({ traceExporter }).start(), in a file that `node --import` loads.
const ended = new InMemorySpanExporter()
trace.setGlobalTracerProvider(new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(ended)] }))
context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable())
propagation.setGlobalPropagator(new W3CTraceContextPropagator())

const tracer = trace.getTracer('baker')

export default defineAgent({
  card: { name: 'Baker', description: 'Bakes what you like, and tells how it went.' },
  negotiate: ({ message }) => (textOf(message) === 'spans' ? reply(spansBelow(undefined).join('\n')) : accepted()),
  work: async ({ message }) => {
    await tracer.startActiveSpan('knead', async span => {
      await tracer.startActiveSpan('add flour', async inner => inner.end())
      span.end()
    })
    return { artifact: { name: 'bread.txt', parts: [text(`${textOf(message)}, still warm`)] } }
  }
})

/** The ended spans below one, or at the top, each indented more than its parent. */
function spansBelow(parentId: string | undefined, indent = ''): string[] {
  return ended
    .getFinishedSpans()
    .filter(({ parentSpanContext }) => parentSpanContext?.spanId === parentId)
    .flatMap(span => [`${indent}${span.name}`, ...spansBelow(span.spanContext().spanId, `${indent}  `)])
}
