/** Makes something of a text, and keeps it until another text comes: for what is the same in most requests. */
export function memoizeLast<Value>(make: (text: string) => Value): (text: string) => Value {
  let last: { readonly text: string; readonly value: Value } | undefined
  return text => {
    if (last?.text !== text) last = { text, value: make(text) }
    return last.value
  }
}
