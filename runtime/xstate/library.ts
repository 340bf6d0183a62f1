/**
 * The functions of XState that other files call. Only charts, and the files of this folder that do what XState does,
 * import values of XState themselves; all others import types.
 */
export {
  and,
  assign,
  createActor,
  emit,
  fromPromise as promiseLogic,
  initialTransition,
  setup,
  StateMachine,
  transition
} from 'xstate'
