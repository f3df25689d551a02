import { useSyncExternalStore } from 'react'
import { type LiveState, live } from './live-requests.ts'

/** A part of the state, which creates no object. The component renders again only if the part changes. */
export const useLive = <Part>(part: (state: LiveState) => Part): Part =>
  useSyncExternalStore(live.subscribe, () => part(live.getState()))
