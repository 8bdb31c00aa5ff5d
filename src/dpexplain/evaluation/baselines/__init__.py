"""The usual explanations, without privacy: LIME, SHAP and MIM on the same point. Offline only: reads private rows."""
