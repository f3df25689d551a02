// Edits a request and replays it.
import { Modal, TextInput } from '@mantine/core'
import { useMutation } from '@tanstack/react-query'
import { useEffect, useState } from 'react'
import type { Exchange } from '../../../../src/inspector/api.ts'
import { DialogActions, Form } from '../../components/forms/form.tsx'
import { clearToast } from '../../components/toast.tsx'
import { useIsPhone } from '../../components/use-is-phone.ts'
import { BodyField } from './body-field.tsx'
import { type EditedRequest, toEditable, toReplayRequest } from './edit.ts'
import { HeaderFields } from './header-fields.tsx'
import classes from './replay.module.css'
import { replay } from './use-replay.ts'

interface EditDialogProps {
  exchange: Exchange
  opened: boolean
  onClose: () => void
}

export const EditDialog = ({ exchange, opened, onClose }: EditDialogProps) => (
  <Modal
    opened={opened}
    onClose={onClose}
    title="Edit and replay"
    size="xl"
    fullScreen={useIsPhone()}
    classNames={{ content: classes.dialog ?? '' }}
  >
    {opened && <EditForm exchange={exchange} onClose={onClose} />}
  </Modal>
)

function EditForm({ exchange, onClose }: Omit<EditDialogProps, 'opened'>) {
  // The request as it was when the dialog opened: the masked values may be shown meanwhile.
  const [original] = useState(exchange)
  const [edited, setEdited] = useState<EditedRequest>(() => toEditable(original))
  const [recordedBody, setRecordedBody] = useState<string>()
  const send = useMutation({
    mutationFn: () => replay(original.id, toReplayRequest(original, edited, recordedBody)),
    onSuccess: onClose,
  })
  // It would cover the buttons.
  useEffect(clearToast, [])
  const set = (change: Partial<EditedRequest>) => setEdited({ ...edited, ...change })
  return (
    <Form onSubmit={() => send.mutate()}>
      <div className={classes.start}>
        <TextInput
          label="Method"
          required
          maxLength={64}
          autoComplete="off"
          value={edited.method}
          onChange={(event) => set({ method: event.currentTarget.value.toUpperCase() })}
        />
        <TextInput
          label="Path and query"
          required
          data-autofocus
          maxLength={8_192}
          autoComplete="off"
          spellCheck={false}
          classNames={{ input: 'mono' }}
          value={edited.path}
          onChange={(event) => set({ path: event.currentTarget.value })}
        />
      </div>
      <HeaderFields headers={edited.headers} onChange={(headers) => set({ headers })} />
      <BodyField
        exchange={original}
        value={edited.body}
        onChange={(body) => set({ body })}
        onLoad={setRecordedBody}
      />
      <div className={classes.actions}>
        <DialogActions mutation={send} onCancel={onClose}>
          Replay
        </DialogActions>
      </div>
    </Form>
  )
}
