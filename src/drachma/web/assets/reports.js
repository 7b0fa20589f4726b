// Reports: the text of a chosen file goes into the form, which is then sent.

const form = document.getElementById("report-form");
const text = document.getElementById("report-text");

document.getElementById("report-file").addEventListener("change", async (event) => {
  const file = event.target.files[0];
  if (!file) return;
  text.value = await file.text();
  form.requestSubmit();
});
