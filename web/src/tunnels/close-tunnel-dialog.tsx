import { Text } from '@mantine/core'
import { call } from '../api.ts'
import { ApiError } from '../api-error.ts'
import { ConfirmDialog } from '../components/dialogs/confirm.tsx'
import { showToast } from '../components/toast.tsx'
import { invalidateWorkspace, queryClient, type Tunnel, tunnelsQuery } from '../queries.ts'
import { useWorkspace } from '../session.tsx'
import { publicAddress } from './tunnel-address.tsx'
import { edgeNames } from './tunnel-cells.tsx'

/** Edges confirm within a second, unless they have lost their connection. */
const CONFIRMATION_MAX_MS = 3_000
const CONFIRMATION_POLL_MS = 250

const sleep = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms))

interface CloseTunnelDialogProps {
  tunnel: Tunnel | null
  opened: boolean
  onClose: () => void
  nextFocus: () => HTMLElement | null
}

export function CloseTunnelDialog({ tunnel, opened, onClose, nextFocus }: CloseTunnelDialogProps) {
  const { slug } = useWorkspace()
  const address = tunnel ? publicAddress(tunnel) : ''
  const close = async () => {
    if (tunnel) showToast(await closeTunnel(slug, tunnel))
  }
  return (
    <ConfirmDialog
      opened={opened}
      title="Close tunnel?"
      actionLabel="Close tunnel"
      onConfirm={close}
      onClose={onClose}
      nextFocus={nextFocus}
    >
      <div>
        <Text fw={600} style={{ overflowWrap: 'anywhere' }}>
          {address}
        </Text>
        <Text size="sm" c="dimmed">
          {tunnel?.key.label ? `API key “${tunnel.key.label}”, client` : 'Client'} {tunnel?.client.address}
        </Text>
      </div>
      <Text size="sm">
        This aborts requests and connections in progress. The tunnel client exits and shows who closed the
        tunnel.
        {tunnel?.pool && ' Other clients with this name stay connected.'}
      </Text>
      <Text size="sm">
        Anyone with the API key can open the tunnel again. To prevent that, revoke the key.
      </Text>
    </ConfirmDialog>
  )
}

/** Waits until the edge has closed the tunnel, or a timeout. Returns a message for the user. */
async function closeTunnel(workspace: string, tunnel: Tunnel): Promise<string> {
  const address = publicAddress(tunnel)
  try {
    await call('tunnels.close', { workspace, id: tunnel.id })
  } catch (error) {
    if (!(error instanceof ApiError && error.code === 'not_found')) throw error
    await invalidateWorkspace(workspace, 'tunnels')
    return `Tunnel ${address} is no longer listed: it was closed, or its edge is offline.`
  }
  const { queryKey } = tunnelsQuery(workspace)
  const deadline = performance.now() + CONFIRMATION_MAX_MS
  do {
    await invalidateWorkspace(workspace, 'tunnels')
    const listed = queryClient.getQueryData(queryKey)?.tunnels.some(({ id }) => id === tunnel.id)
    if (!listed) return `Tunnel ${address} closed.`
    await sleep(CONFIRMATION_POLL_MS)
  } while (performance.now() < deadline)
  const unconfirmed =
    tunnel.edges.length === 1
      ? `Edge ${edgeNames(tunnel)} has not confirmed it yet.`
      : `The edges ${edgeNames(tunnel)} have not all confirmed it yet.`
  return `Closing tunnel ${address}. ${unconfirmed}`
}
