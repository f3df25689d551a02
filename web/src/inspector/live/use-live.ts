import { useSyncExternalStore } from 'react'
import { type LiveState, live } from './live-requests.ts'

export const useLive = (): LiveState => useSyncExternalStore(live.subscribe, live.getState)
