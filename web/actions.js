// Reset, adjust, block: each asks first, says what will happen, and shows the server's answer if it refuses.
import { call } from './api.js';
import { $, element } from './dom.js';
import { allowance, sentence, whole } from './format.js';

// A global limit has one client without an id.
const named = (id) => id || 'everyone';

// Opens the dialog and resolves to true once `run` has succeeded, or false if the person cancels. `fields` are
// [{name, label, …attributes of the input}]; `run` gets their values.
export function confirm({ title, text, ok, danger = false, fields = [], run }) {
  const dialog = $('confirm');
  const form = $('confirm-form');
  const error = $('confirm-error');
  const button = $('confirm-ok');
  $('confirm-title').textContent = title;
  $('confirm-text').textContent = text;
  $('confirm-fields').replaceChildren(
    ...fields.map(({ label, ...attributes }) =>
      element(
        'label',
        {},
        label,
        element('input', { type: 'text', autocomplete: 'off', spellcheck: 'false', ...attributes }),
      ),
    ),
  );
  error.hidden = true;
  button.textContent = ok;
  button.className = danger ? 'danger' : '';
  const opener = document.activeElement;
  return new Promise((resolve) => {
    const close = (result) => {
      form.onsubmit = null;
      dialog.onclose = null;
      $('confirm-cancel').onclick = null;
      if (dialog.open) dialog.close();
      opener?.focus?.();
      resolve(result);
    };
    form.onsubmit = async (event) => {
      event.preventDefault();
      button.disabled = true;
      error.hidden = true;
      try {
        await run(Object.fromEntries(new FormData(form)));
        close(true);
      } catch (problem) {
        error.textContent =
          problem.status === 403
            ? `${sentence(problem.message)} Enter the write token with the Token button.`
            : problem.status
              ? sentence(problem.message)
              : 'The server does not answer. Nothing is known to have changed.';
        error.hidden = false;
        form.querySelector('input')?.focus();
      } finally {
        button.disabled = false;
      }
    };
    dialog.onclose = () => close(false);
    $('confirm-cancel').onclick = () => close(false);
    dialog.showModal();
  });
}

export const reset = (limit, id) =>
  confirm({
    title: 'Reset this client?',
    text: `Fills the bucket of ${named(id)} for ${limit}. Its next requests pass as if it had not asked for a while.`,
    ok: 'Reset',
    run: () => call('POST', '/ratelimit/reset', { limit, id }),
  });

export const adjust = (limit, id, client) =>
  confirm({
    title: 'Adjust the numbers?',
    text: `Gives ${named(id)} other numbers for ${limit} until the time is over. Empty fields stay as they are.`,
    ok: 'Adjust',
    fields: [
      { name: 'rate', label: `Rate${client.rate ? `, now ${allowance(client.rate)}` : ''}`, placeholder: '200/s' },
      {
        name: 'burst',
        label: `Burst${client.rate ? `, now ${whole(client.rate.burst)}` : ''}`,
        placeholder: '50',
        inputmode: 'numeric',
      },
      { name: 'for', label: 'For', value: '1h' },
    ],
    run: ({ rate, burst, for: duration }) => {
      const numbers = { limit, id };
      if (rate) numbers.rate = rate;
      if (burst) numbers.burst = Number(burst.replaceAll(',', ''));
      if (duration) numbers.for = duration;
      return call('PUT', '/ratelimit/adjust', numbers);
    },
  });

export const unadjust = (limit, id) =>
  confirm({
    title: 'Remove the adjustment?',
    text: `${named(id)} gets the configured numbers of ${limit} again.`,
    ok: 'Remove',
    run: () => call('DELETE', '/ratelimit/adjust', { limit, id }),
  });

export const block = (limit, id) =>
  confirm({
    title: 'Block this client?',
    text: `Denies every request of ${named(id)} that ${limit} would count.`,
    ok: 'Block',
    danger: true,
    fields: [
      { name: 'reason', label: 'Reason', placeholder: 'abuse' },
      { name: 'for', label: 'For (empty: until removed)', value: '1h' },
    ],
    run: ({ reason, for: duration }) => {
      const entry = { limit, id, reason: reason || 'blocked in the dashboard' };
      if (duration) entry.for = duration;
      return call('POST', '/ratelimit/access/deny', entry);
    },
  });

// An automatic block is lifted by a reset, an operator's entry is removed from the list.
export const unblock = (limit, id, client) =>
  confirm({
    title: 'Lift the block?',
    text: `${named(id)} may use ${limit} again. Reason of the block: ${client.block?.reason || 'none given'}.`,
    ok: 'Lift',
    run: async () => {
      const lifted = await call('POST', '/ratelimit/reset', { limit, id, block: true });
      if (!lifted.unblocked) await call('DELETE', '/ratelimit/access/deny', { limit, id });
    },
  });
