// The page: the list of requests, and the selected one beside it, or instead of it on a phone.
import { useDisclosure } from '@mantine/hooks'
import { useEffect, useState, useSyncExternalStore } from 'react'
import { type ExchangeSummary, isReplayable } from '../../../src/inspector/api.ts'
import { useIsPhone } from '../components/use-is-phone.ts'
import { getAccess, subscribeAccess } from './access.ts'
import classes from './app.module.css'
import { ExchangeDetail } from './detail/exchange-detail.tsx'
import { NoSelection } from './detail/no-selection.tsx'
import { type Filter, NO_FILTER } from './list/filter.ts'
import { RequestList } from './list/request-list.tsx'
import { useShownRequests } from './list/use-shown-requests.ts'
import { live } from './live/live-requests.ts'
import { select, useSelection } from './live/selection.ts'
import { useLive } from './live/use-live.ts'
import { useReplay } from './replay/use-replay.ts'
import { AccessPage } from './shell/access-page.tsx'
import { DisconnectedAlert } from './shell/disconnected-alert.tsx'
import { Header } from './shell/header.tsx'
import { KeysDialog } from './shell/keys-dialog.tsx'
import { useListKeys, useShortcuts } from './shell/shortcuts.ts'

export function App() {
  const access = useSyncExternalStore(subscribeAccess, getAccess)
  return access === 'granted' || access === 'ended' ? <Inspector /> : <AccessPage access={access} />
}

export type Dialog = 'edit' | 'compare' | 'signature' | null

function Inspector() {
  useEffect(() => {
    live.start()
    return () => live.stop()
  }, [])
  const isPhone = useIsPhone()
  const isLive = useLive(({ status }) => status === 'live')
  const isEmpty = useLive(({ requests }) => requests.length === 0)
  const [filter, setFilter] = useState<Filter>(NO_FILTER)
  const shown = useShownRequests(filter)
  const selected = useSelection()
  const [dialog, setDialog] = useState<Dialog>(null)
  const [keysOpened, keys] = useDisclosure()
  const replay = useReplay()
  const summary = useLive(({ requests }) => requests.find(({ id }) => id === selected))
  const canReplay = (request: ExchangeSummary | undefined): request is ExchangeSummary =>
    isLive && request !== undefined && isReplayable(request)
  useListKeys(shown.requests, selected)
  useShortcuts({
    Escape: () => select(undefined),
    '?': keys.open,
    r: () => canReplay(summary) && replay.mutate(summary),
    R: () => {
      const last = shown.requests.find(canReplay)
      if (!last) return
      // If it fails, the reason is shown there.
      select(last.id)
      replay.mutate(last)
    },
    e: () => canReplay(summary) && setDialog('edit'),
    c: () => summary && setDialog('compare'),
  })
  return (
    <div className={classes.page}>
      <Header onShowKeys={keys.open} />
      <DisconnectedAlert />
      <main className={classes.panes}>
        {!(isPhone && selected) && (
          <RequestList filter={filter} onFilter={setFilter} shown={shown} selected={selected} />
        )}
        {selected ? (
          <ExchangeDetail
            key={selected}
            id={selected}
            summary={summary}
            dialog={dialog}
            onDialog={setDialog}
            replay={replay}
          />
        ) : (
          !isPhone && <NoSelection isEmpty={isEmpty} onShowKeys={keys.open} />
        )}
      </main>
      <KeysDialog opened={keysOpened} onClose={keys.close} />
    </div>
  )
}
