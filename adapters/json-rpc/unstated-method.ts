import type { Dialect } from '../legacy/dialect.ts'
import type { Method } from './method.ts'

/**
 * The method that a request without a version calls: that of the dialect that has one of its name. Where two have, as 0.1 and
 * 0.3 have `tasks/get`, the one that claims the call has it.
 */
export function unstatedMethod(dialects: readonly Dialect[], name: string): Method | undefined {
  const having = dialects.filter(dialect => dialect.method(name))
  const claiming = having.find(({ claims }) => claims)
  const others = having.filter(dialect => dialect !== claiming)
  const [method, other] = [claiming?.method(name), others[0]?.method(name)]
  return method && other && claiming?.claims ? either(method, other, claiming.claims) : (method ?? other)
}

/** Methods of one name stream alike. */
function either(first: Method, second: Method, isFirst: Required<Dialect>['claims']): Method {
  if (!first.streaming && !second.streaming) return { streaming: false, answer: async (params, call) => ((await isFirst(params, call)) ? first : second).answer(params, call) }
  if (!first.streaming || !second.streaming) return second
  return {
    streaming: true,
    async *events(params, call) {
      yield* ((await isFirst(params, call)) ? first : second).events(params, call)
    }
  }
}
